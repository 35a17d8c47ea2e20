"""The static spike: the scores of the others along the fixed direction, against the own score of the last."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from separatrix.core.tensors import torch
from separatrix.training.learning.witnesses._base import Plan, Witness
from separatrix.training.learning.witnesses._families import (
    SPELLINGS,
    Family,
    cooling,
    family_of,
    features_to_inputs,
)
from separatrix.training.learning.witnesses._fitting import fit_threshold
from separatrix.training.learning.witnesses._writing import (
    FAR,
    Constant,
    Matrix,
    chosen_channels,
    write_head,
    write_weakly,
)

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks import Setting
    from separatrix.training.tasks.spike import Spike


@dataclass(frozen=True)
class Maps:
    """Of queries, keys, and what is added up of a token; whether all of it is as the Bayes rule has it."""

    query: Matrix
    key: Matrix
    value: Matrix
    exact: bool = False


class SpikeWitness(Witness):
    """The last token asks with a constant. It hears the sum of f(s_i), s = <u, z>, and its own score beside.

    Which of the two is larger is the answer: they are two channels of what is heard, so that it does not
    matter whether both are divided by the sum of all scores.

    - Softmax: logits A s_i, and A²/2 + ln n for the last token itself. That is the Bayes rule.
    - Sums: f(s) = (s + 2/A) s, the first two terms of the likelihood ratio.
    - Series: f(s) = T(A s) s.
    - Powers and rectified logits: those of s + c, with the c that is best on training samples.
    - Features: a broken line that follows exp(A s), one bend for a channel.

    But for the first of these, how many times the own score has to be exceeded is fitted on training samples.
    """

    name = "spike"
    mechanisms = SPELLINGS

    def plans(self, task: Spike, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        keys, values = setting.keys, setting.width // setting.heads
        if setting.width < task.parameters.dz + 4 or values < 2 or keys < 3:
            return []
        return [
            partial(_write, task=task, setting=setting, maps=maps)
            for maps in _maps(task, mechanism, setting, keys)
        ]


def _maps(task: Spike, mechanism: Mechanism, setting: Setting, keys: int) -> Iterator[Maps]:
    """Ways to ask, to be asked, and to answer."""
    dz, shift, n, width = task.parameters.dz, task.shift, task.parameters.n, setting.width
    along = chosen_channels(width, *range(dz)).sum(0, keepdim=True) / math.sqrt(dz)
    last, one = chosen_channels(width, dz), Constant(setting, dz + 1).one
    token, family = one - last, family_of(mechanism)
    if family is Family.SHARP:
        own = shift * shift / 2 + math.log(n)
        yield Maps(cooling(mechanism, n + 1) * last, shift * along + own * last, token, exact=True)
    elif family is Family.SUM:
        own = 10.0 * n if mechanism.normalised else 1.0
        yield Maps(last, along + 2 / shift * token + own * last, along)
    elif family is Family.DELTA:
        yield Maps(last, torch.cat([along + 2 / shift * token + last, FAR * one]), along)
    elif family is Family.SERIES:
        yield Maps(shift * last, along, along)
    elif family is Family.POWER or family is Family.RECTIFIED:
        sign = 1 if family is Family.POWER else -1
        for share in (0.0, 0.1, 0.3, 0.5, 0.6, 0.7):
            yield Maps(last, along + sign * share * shift * token + last, token)
    elif family is Family.FEATURES:
        yield _broken_line(task, mechanism, keys, along, token, last)


def _broken_line(
    task: Spike, mechanism: Mechanism, keys: int, along: Matrix, token: Matrix, last: Matrix
) -> Maps:
    """Bends at t weighed by exp(A t): their sum follows exp(A s), whatever the shape of a bend.

    The last channel is the own score of the last token.
    """
    shift, steep = task.shift, task.shift if mechanism.name == "exp-features" else 10.0
    highest = shift / 2 + math.log(task.parameters.n) / shift + 0.5
    bends = torch.linspace(0, highest, keys - 1)[:, None]
    weights = torch.cat([(shift * (bends - highest)).exp(), torch.ones(1, 1)])
    nothing = features_to_inputs(mechanism, torch.zeros(()))
    own = features_to_inputs(mechanism, torch.ones(()))
    key = torch.cat([steep * (along - bends * token) + nothing * last, nothing * token + own * last])
    return Maps(features_to_inputs(mechanism, weights) @ last, key, token)


def _write(model: Any, task: Spike, setting: Setting, maps: Maps) -> None:
    """Channels: z, whether a token is the last, a constant, what is heard of the others and of oneself."""
    dz, width, attention = task.parameters.dz, setting.width, model.blocks[0].attention
    constant = Constant(setting, dz + 1)
    model.inputs.weight[: dz + 1] = torch.eye(dz + 1)
    model.inputs.bias[constant.channel] = constant.number
    last, others, own = (chosen_channels(width, each) for each in (dz, dz + 2, dz + 3))
    value, back = torch.cat([maps.value, last]), torch.cat([others, own])
    write_head(attention, maps.query, maps.key, value, back, gain=constant.gain)
    if "beta" in attention.learned:
        write_weakly(attention, constant.gain * constant.one)
    if maps.exact:
        model.head.weight[:] = torch.cat([own - others, others - own])
    else:
        fit_threshold(model, task, others, own)
