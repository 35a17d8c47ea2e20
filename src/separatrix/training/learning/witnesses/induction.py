"""Induction: a convolution puts every symbol beside the one before it, and the last one finds itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from separatrix.core.tensors import torch
from separatrix.training.learning.witnesses._base import Plan, Witness
from separatrix.training.learning.witnesses._families import SPELLINGS
from separatrix.training.learning.witnesses._retrieval import Retrieval, retrievals
from separatrix.training.learning.witnesses._writing import look_back, write_head, write_weakly

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks import Setting
    from separatrix.training.tasks.induction import Induction


class InductionWitness(Witness):
    """One layer. Queries are codes of the token itself, keys of the one before, by the convolution.

    So the last token finds the place after the one where its symbol was before. Values are the symbols
    themselves, and go to channels of their own, which the head reads.
    """

    name = "induction"
    mechanisms = SPELLINGS

    def plans(self, task: Induction, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        symbols, values = task.parameters.symbols, setting.width // setting.heads
        if setting.conv < 2 or setting.width < 2 * symbols or values < symbols:
            return []
        found = retrievals(mechanism, symbols, setting.key_width or values, task.parameters.n)
        return [
            partial(_write, task=task, setting=setting, retrieval=each) for each in found if not each.weight
        ]


def _write(model: Any, task: Induction, setting: Setting, retrieval: Retrieval) -> None:
    symbols, width, attention = task.parameters.symbols, setting.width, model.blocks[0].attention
    gain = 1 / math.sqrt(width) if setting.norm else 1.0
    model.inputs.weight[:, :symbols] = torch.eye(symbols)
    query, key = (torch.zeros(code.shape[1], width) for code in (retrieval.query, retrieval.key))
    query[:, :symbols], key[:, :symbols] = retrieval.query.T, retrieval.key.T
    value, back = torch.eye(width)[:symbols], torch.eye(width)[symbols : 2 * symbols]
    look_back(attention, 1)
    write_head(attention, query, key, value, back, gain=gain)
    if "beta" in attention.learned:
        write_weakly(attention, gain * torch.ones(1, width))
    model.head.weight[:] = back
