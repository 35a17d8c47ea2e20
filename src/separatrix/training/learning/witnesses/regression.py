"""Regression in context: one step of gradient descent, or a weighted mean of what the examples say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from separatrix.core.tensors import torch
from separatrix.training.learning.witnesses._base import Plan, Witness
from separatrix.training.learning.witnesses._codes import spread_codes
from separatrix.training.learning.witnesses._families import SPELLINGS, Family, cooling, family_of
from separatrix.training.learning.witnesses._fitting import fit_scale
from separatrix.training.learning.witnesses._writing import (
    OPEN,
    Constant,
    Matrix,
    chosen_channels,
    write_head,
    write_weakly,
)

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks import Setting
    from separatrix.training.tasks.regression import Regression

HIDDEN = -30.0
"""A logit that hides the asking token from itself: it has no value to tell."""


class RegressionWitness(Witness):
    """The last token asks with its x, the examples answer with theirs, and what is passed on is y.

    - Sums: sum_i <x, x_i> y_i / (n + d + 1), one step of gradient descent from 0 with the best rate. The last
      token gives itself a large score where rows are divided by their sum, which is then nearly constant.
    - Delta rules: a step of gradient descent for every example, one after the other; mesanet fits all of
      them at once. Both scale keys to length 1: a constant in them makes their lengths more alike.
    - Softmax, series and features: means of the y_i, weighed by how much x_i is like x (features: along
      directions spread over the sphere). A second head, where there is one, asks with -x and is subtracted:
      that takes away the mean of all y_i.

    But for sums without a decay, what the result is multiplied by is fitted on training samples, and the
    best of several sizes of the logits is taken.
    """

    name = "regression"
    mechanisms = tuple(each for each in SPELLINGS if each not in ("power:beta=4", "relu", "squared-relu"))

    def plans(self, task: Regression, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        d, keys = task.parameters.d, setting.keys
        if setting.out_norm or setting.width < d + 4 or keys < d + 1:
            return []
        ways = _ways(task, mechanism, setting)
        return [partial(_write, task=task, setting=setting, way=way) for way in ways]


class Way(NamedTuple):
    """Maps of queries and keys, the strength of writes before the sigmoid, and the scale if it is known."""

    query: Matrix
    key: Matrix
    strength: float = -OPEN
    scale: float | None = None


def _ways(task: Regression, mechanism: Mechanism, setting: Setting) -> Iterator[Way]:
    n, d, width = task.parameters.n, task.parameters.d, setting.width
    x, last = chosen_channels(width, *range(d)), chosen_channels(width, d + 1)
    one, family = Constant(setting, d + 2).one, family_of(mechanism)
    if family is Family.SUM:
        own = 1000.0 * n if mechanism.normalised else 0.0
        scale = None if mechanism.name in ("retention", "log-linear") else (own or 1.0) / (n + d + 1)
        yield Way(torch.cat([x, one]), torch.cat([x, own * last]), scale=scale)
    elif family is Family.DELTA:
        for strength in (4.0,) if mechanism.name == "mesanet" else (-1.0, 0.0, 1.0):
            yield Way(x, torch.cat([x, one / 2]), strength)
    elif family is Family.SHARP:
        for size in (0.1, 0.2, 0.5, 0.7, 1.0):
            query = cooling(mechanism, n + 1) * torch.cat([size * x, one])
            yield Way(query, torch.cat([x, HIDDEN * last]))
    elif family is Family.SERIES:
        for size in (0.1, 0.3, 0.5):
            yield Way(size * x, x)
    elif family is Family.FEATURES:
        keys = setting.keys
        along = spread_codes(keys, d) @ x
        steep = 1 if mechanism.name == "exp-features" else 20
        for near in (0.5, 1.0, 1.5, 2.0):
            yield Way(5 * (along - near * one), steep * (along + HIDDEN * last))


def _write(model: Any, task: Regression, setting: Setting, way: Way) -> None:
    d, attention, constant = (
        task.parameters.d,
        model.blocks[0].attention,
        Constant(setting, task.parameters.d + 2),
    )
    model.inputs.weight[: d + 2] = torch.eye(d + 2)
    model.inputs.bias[constant.channel] = constant.number
    y, said = (chosen_channels(setting.width, each) for each in (d, d + 3))
    small = way.scale or (
        1.0 if attention.mechanism.normalised else 1 / task.parameters.n
    )  # beside a constant
    write_head(attention, way.query, way.key, y, small * said, gain=constant.gain)
    family = family_of(attention.mechanism)
    if setting.heads > 1 and family in (Family.SHARP, Family.SERIES, Family.FEATURES):
        turned = way.query.clone()
        turned[:, :d] *= -1
        write_head(attention, turned, way.key, y, -small * said, head=1, gain=constant.gain)
    if "beta" in attention.learned:
        write_weakly(attention, constant.gain * constant.one, way.strength)
    if way.scale is None:
        fit_scale(model, task, said)
    else:
        model.head.weight[:] = constant.gain * said
