"""Duplication: a sum counts the tokens, and a share is counted by the first of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from separatrix.core.tensors import torch
from separatrix.training.learning.witnesses._base import Plan, Witness
from separatrix.training.learning.witnesses._families import family_of
from separatrix.training.learning.witnesses._fitting import fit_threshold
from separatrix.training.learning.witnesses._writing import chosen_channels, write_head, write_weakly

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks import Setting
    from separatrix.training.tasks.duplication import Duplication


class DuplicationWitness(Witness):
    """Every token has the same query and key, so all scores are equal; which symbol it is does not matter.

    Without a first token, mechanisms that do not divide by the sum return the number of tokens, which the
    head compares with a constant. With one, everybody returns the share of the first token, compared with
    the share of all. Between one multiset and its double lies the threshold.
    """

    name = "duplication"
    mechanisms = (
        "identity-features:normalised=no",
        "causal-linear",
        "retention",
        "ssd",
        "gla",
        "delta",
        "gated-delta",
        "based:normalised=no",
        "elu:normalised=no",
    )

    def plans(self, task: Duplication, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        values = setting.width // setting.heads
        counts = not mechanism.normalised and not setting.out_norm and mechanism.name not in SHARED
        if family_of(mechanism) is None or values < 2 or setting.width < 4:
            return []
        if not task.parameters.first and not counts:
            return []
        return [partial(_write, task=task, setting=setting)]


SHARED = ("relu", "squared-relu")
"""Mechanisms that divide by the number of tokens instead of the sum of the scores."""


def _write(model: Any, task: Duplication, setting: Setting) -> None:
    """Channels: 1 everywhere; 1 at the first token and -1 elsewhere; what is heard of both."""
    attention, width = model.blocks[0].attention, setting.width
    model.inputs.weight[:, 0], model.inputs.weight[:, 1] = 1, -1
    model.inputs.weight[task.parameters.symbols, 1] = 1
    everywhere, sign, here, all_heard = (chosen_channels(width, each) for each in range(4))
    first = (everywhere + sign) / 2
    gain = math.sqrt(2 / width) if setting.norm else 1.0
    counted = first if task.parameters.first else everywhere
    value, back = torch.cat([counted, everywhere]), torch.cat([here, all_heard])
    write_head(attention, everywhere, everywhere, value, back, gain=gain)
    if "beta" in attention.learned:
        write_weakly(attention, gain * everywhere)
    if task.parameters.first:  # among twice as many its share is the smaller one
        fit_threshold(model, task, -here, all_heard)
    else:
        fit_threshold(model, task, here, everywhere)
