"""Regression in context: one step of gradient descent, or a weighted mean of the examples' values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from separatrix.core.tensors import torch
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.witnesses._base import TaskWitness, fit_scale
from separatrix.training.learning.witnesses._channels import ConstantChannel, Matrix, select_channels
from separatrix.training.learning.witnesses._codes import spread_codes
from separatrix.training.learning.witnesses._families import SPELLINGS, Family, family_of, logit_factor
from separatrix.training.learning.witnesses._writing import OPEN, write_head, write_strength
from separatrix.training.tasks import Setting
from separatrix.training.tasks.regression import RegressionTask

MASK_LOGIT = -30.0
"""Hides the last token from itself: it has no value."""
WITHOUT_WITNESS = ("power:beta=4", "relu", "squared-relu")


class RegressionMaps(NamedTuple):
    """Maps to queries and keys, the logit of the strength of writes, and the scale if it is known."""

    query: Matrix
    key: Matrix
    strength: float = -OPEN
    scale: float | None = None


class RegressionWitness(TaskWitness):
    """The query of the last token is its x, the keys of the examples are theirs, and the values are y.

    - Sums: sum_i <x, x_i> y_i / (n + d + 1), one step of gradient descent from 0 with the best rate. If
      weights are divided by their sum, the last token gives itself a large score, which makes the sum nearly
      constant.
    - Delta rules: a step of gradient descent for every example in sequence; mesanet fits all of them at
      once. Both scale keys to length 1: a constant channel makes their lengths more equal.
    - Softmax, series and features: means of the y_i, weighted by the similarity of x_i to x (features: along
      spread directions). A second head, if there is one, has the query -x and is subtracted, which removes
      the mean of all y_i.

    Except for sums without decay, the scale of the result is fitted to training samples, and the best of
    several scales of the logits is used.
    """

    name = "regression"
    mechanisms = tuple(spelling for spelling in SPELLINGS if spelling not in WITHOUT_WITNESS)

    def variants(self, task: RegressionTask, mechanism: Mechanism, setting: Setting) -> Iterator[RegressionMaps]:
        if setting.out_norm or setting.width < task.d + 4 or setting.keys < task.d + 1:
            return
        n, d, width = task.n, task.d, setting.width
        x, last = select_channels(width, *range(d)), select_channels(width, d + 1)
        unit, family = ConstantChannel(setting, d + 2).unit, family_of(mechanism)
        if family is Family.SUM:
            self_score = 1000.0 * n if mechanism.is_normalised else 0.0
            decays = mechanism.name in ("retention", "log-linear")
            scale = None if decays else (self_score or 1.0) / (n + d + 1)
            yield RegressionMaps(torch.cat([x, unit]), torch.cat([x, self_score * last]), scale=scale)
        elif family is Family.DELTA:
            for strength in (4.0,) if mechanism.name == "mesanet" else (-1.0, 0.0, 1.0):
                yield RegressionMaps(x, torch.cat([x, unit / 2]), strength)
        elif family is Family.SHARP:
            for size in (0.1, 0.2, 0.5, 0.7, 1.0):
                query = logit_factor(mechanism, n + 1) * torch.cat([size * x, unit])
                yield RegressionMaps(query, torch.cat([x, MASK_LOGIT * last]))
        elif family is Family.SERIES:
            for size in (0.1, 0.3, 0.5):
                yield RegressionMaps(size * x, x)
        elif family is Family.FEATURES:
            along = spread_codes(setting.keys, d) @ x
            steepness = 1 if mechanism.name == "exp-features" else 20
            for threshold in (0.5, 1.0, 1.5, 2.0):
                yield RegressionMaps(5 * (along - threshold * unit), steepness * (along + MASK_LOGIT * last))

    def write(self, model: Any, task: RegressionTask, setting: Setting, variant: RegressionMaps) -> None:
        d, attention, constant = task.d, model.blocks[0].attention, ConstantChannel(setting, task.d + 2)
        model.inputs.weight[: d + 2] = torch.eye(d + 2)
        model.inputs.bias[constant.channel] = constant.number
        y, prediction = (select_channels(setting.width, channel) for channel in (d, d + 3))
        # Without a known scale, the output must stay small compared to the constant channel.
        size = variant.scale or (1.0 if attention.mechanism.is_normalised else 1 / task.n)
        write_head(attention, variant.query, variant.key, y, size * prediction, gain=constant.gain)
        family = family_of(attention.mechanism)
        if setting.heads > 1 and family in (Family.SHARP, Family.SERIES, Family.FEATURES):
            # The mean of all y_i is the same for x and -x and cancels in the difference.
            query = variant.query.clone()
            query[:, :d] *= -1
            write_head(attention, query, variant.key, y, -size * prediction, head=1, gain=constant.gain)
        write_strength(attention, constant.gain * constant.unit, variant.strength)
        if variant.scale is None:
            fit_scale(model, task, prediction)
        else:
            model.head.weight[:] = constant.gain * prediction
