"""The static spike: the other tokens' scores along the fixed direction against the last token's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from separatrix.core.tensors import torch
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.witnesses._base import TaskWitness, fit_threshold
from separatrix.training.learning.witnesses._channels import ConstantChannel, Matrix, select_channels
from separatrix.training.learning.witnesses._families import SPELLINGS, Family, family_of, invert_features, logit_factor
from separatrix.training.learning.witnesses._writing import LONG_KEY, write_head, write_strength
from separatrix.training.tasks import Setting
from separatrix.training.tasks.spike import SpikeTask


class SpikeMaps(NamedTuple):
    """Maps to queries, keys and values; `exact` if they are the Bayes rule."""

    query: Matrix
    key: Matrix
    value: Matrix
    exact: bool = False


class SpikeWitness(TaskWitness):
    """The query of the last token is constant. It gets the sum of f(s_i), s = <u, z>, and its own score.

    The larger of the two is the answer: they are two channels of the output, so that it does not matter
    whether both are divided by the sum of all scores.

    - Softmax: logits A s_i, and A²/2 + ln n for the last token itself. That is the Bayes rule.
    - Sums: f(s) = (s + 2/A) s, the first two terms of the likelihood ratio.
    - Series: f(s) = T(A s) s.
    - Powers and rectified logits: those of s + c, with the best c on training samples.
    - Features: a piecewise linear function that follows exp(A s), with one bend per channel.

    Except for softmax, the multiple of the own score that is the threshold is fitted to training samples.
    """

    name = "spike"
    mechanisms = SPELLINGS

    def variants(self, task: SpikeTask, mechanism: Mechanism, setting: Setting) -> Iterator[SpikeMaps]:
        if setting.width < task.dz + 4 or setting.width // setting.heads < 2 or setting.keys < 3:
            return
        dz, shift, n, width = task.dz, task.shift, task.n, setting.width
        along = select_channels(width, *range(dz)).sum(0, keepdim=True) / math.sqrt(dz)
        last, unit = select_channels(width, dz), ConstantChannel(setting, dz + 1).unit
        token, family = unit - last, family_of(mechanism)
        if family is Family.SHARP:
            own_logit = shift * shift / 2 + math.log(n)
            query = logit_factor(mechanism, n + 1) * last
            yield SpikeMaps(query, shift * along + own_logit * last, token, exact=True)
        elif family is Family.SUM:
            own_score = 10.0 * n if mechanism.is_normalised else 1.0
            yield SpikeMaps(last, along + 2 / shift * token + own_score * last, along)
        elif family is Family.DELTA:
            yield SpikeMaps(last, torch.cat([along + 2 / shift * token + last, LONG_KEY * unit]), along)
        elif family is Family.SERIES:
            yield SpikeMaps(shift * last, along, along)
        elif family is Family.POWER or family is Family.RECTIFIED:
            sign = 1 if family is Family.POWER else -1
            for share in (0.0, 0.1, 0.3, 0.5, 0.6, 0.7):
                yield SpikeMaps(last, along + sign * share * shift * token + last, token)
        elif family is Family.FEATURES:
            yield _piecewise_linear_maps(task, mechanism, setting.keys, along, token, last)

    def write(self, model: Any, task: SpikeTask, setting: Setting, variant: SpikeMaps) -> None:
        """Use channels for z, the mark of the last token, a constant, and the outputs of both scores."""
        dz, width, attention = task.dz, setting.width, model.blocks[0].attention
        constant = ConstantChannel(setting, dz + 1)
        model.inputs.weight[: dz + 1] = torch.eye(dz + 1)
        model.inputs.bias[constant.channel] = constant.number
        last, total, own_score = (select_channels(width, channel) for channel in (dz, dz + 2, dz + 3))
        values, outputs = torch.cat([variant.value, last]), torch.cat([total, own_score])
        write_head(attention, variant.query, variant.key, values, outputs, gain=constant.gain)
        write_strength(attention, constant.gain * constant.unit)
        if variant.exact:
            model.head.weight[:] = torch.cat([own_score - total, total - own_score])
        else:
            fit_threshold(model, task, total, own_score)


def _piecewise_linear_maps(
    task: SpikeTask, mechanism: Mechanism, keys: int, along: Matrix, token: Matrix, last: Matrix
) -> SpikeMaps:
    """Weight bends at t by exp(A t): their sum follows exp(A s), whatever the shape of a bend.

    The last channel is the own score of the last token.
    """
    shift, steepness = task.shift, task.shift if mechanism.name == "exp-features" else 10.0
    highest = shift / 2 + math.log(task.n) / shift + 0.5
    bends = torch.linspace(0, highest, keys - 1)[:, None]
    weights = torch.cat([(shift * (bends - highest)).exp(), torch.ones(1, 1)])
    low, high = (invert_features(mechanism, torch.tensor(feature)) for feature in (0.0, 1.0))
    key = torch.cat([steepness * (along - bends * token) + low * last, low * token + high * last])
    return SpikeMaps(invert_features(mechanism, weights) @ last, key, token)
