"""Duplication: a sum counts the tokens; the share of the first token reveals their number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from separatrix.core.tensors import torch
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.witnesses._base import TaskWitness, fit_threshold
from separatrix.training.learning.witnesses._channels import select_channels
from separatrix.training.learning.witnesses._families import family_of
from separatrix.training.learning.witnesses._writing import write_head, write_strength
from separatrix.training.tasks import Setting
from separatrix.training.tasks.duplication import DuplicationTask

DIVIDED_BY_TOKENS = ("relu", "squared-relu")
"""Mechanisms that divide by the number of tokens instead of the sum of the scores."""


class DuplicationWitness(TaskWitness):
    """All tokens have the same query and key, so all scores are equal; symbols do not matter.

    Without a first token, mechanisms that do not divide by the sum return the number of tokens, which the
    head compares with a constant. With one, every mechanism returns the share of the first token, compared
    with the share of all. The threshold lies between the values of a multiset once and twice.
    """

    name = "duplication"
    mechanisms = (
        *("identity-features:normalised=no", "causal-linear", "retention", "ssd", "gla", "delta"),
        *("gated-delta", "based:normalised=no", "elu:normalised=no"),
    )

    def variants(self, task: DuplicationTask, mechanism: Mechanism, setting: Setting) -> Iterator[None]:
        is_normalised = mechanism.is_normalised or setting.out_norm or mechanism.name in DIVIDED_BY_TOKENS
        fits = setting.width // setting.heads >= 2 and setting.width >= 4
        if family_of(mechanism) is not None and fits and (task.first or not is_normalised):
            yield None

    def write(self, model: Any, task: DuplicationTask, setting: Setting, variant: None) -> None:
        """Use four channels: 1 everywhere; 1 at the first token and -1 elsewhere; the outputs for both."""
        attention, width = model.blocks[0].attention, setting.width
        model.inputs.weight[:, 0], model.inputs.weight[:, 1] = 1, -1
        model.inputs.weight[task.symbols, 1] = 1
        everywhere, sign, count, total = (select_channels(width, channel) for channel in range(4))
        value = (everywhere + sign) / 2 if task.first else everywhere
        # Every token has two channels of ±1, so a norm divides it by sqrt(2 / width).
        gain = math.sqrt(2 / width) if setting.norm else 1.0
        values, outputs = torch.cat([value, everywhere]), torch.cat([count, total])
        write_head(attention, everywhere, everywhere, values, outputs, gain=gain)
        write_strength(attention, gain * everywhere)
        if task.first:  # among twice as many tokens its share is smaller
            fit_threshold(model, task, -count, total)
        else:
            fit_threshold(model, task, count, everywhere)
