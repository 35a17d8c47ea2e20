"""Recall of values by their keys: a convolution puts every value beside its key, and a query finds it."""

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
    from separatrix.training.tasks.mqar import Recall


class RecallWitness(Witness):
    """The stream has one channel for every symbol. Queries are codes of the token itself.

    Keys are codes of the token before, by the convolution, and values are the token itself if it is one of
    the values: so at each value in context stands the code of its key, and everywhere else the value 0. A
    question finds the value whose key has its code. The head reads the channels of the values.
    """

    name = "mqar"
    mechanisms = SPELLINGS

    def plans(self, task: Recall, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        sizes, channels = task.parameters, setting.keys
        room = setting.width >= sizes.keys + sizes.values and setting.width // setting.heads >= sizes.values
        if setting.conv < 2 or not room:
            return []
        found = retrievals(mechanism, sizes.keys, channels, 3 * sizes.pairs)
        return [partial(_write, task=task, setting=setting, retrieval=each) for each in found]


def _write(model: Any, task: Recall, setting: Setting, retrieval: Retrieval) -> None:
    keys, values, width = task.parameters.keys, task.parameters.values, setting.width
    attention, gain = model.blocks[0].attention, 1 / math.sqrt(width) if setting.norm else 1.0
    model.inputs.weight[:, : keys + values] = torch.eye(keys + values)
    query, key = (torch.zeros(code.shape[1], width) for code in (retrieval.query, retrieval.key))
    query[:, :keys], key[:, :keys] = retrieval.query.T, retrieval.key.T
    value = torch.eye(width)[keys : keys + values]
    look_back(attention, 1)
    if retrieval.weight:
        key[-1, :keys] = retrieval.weight
        look_back(attention, 1, 0, channel=len(key) - 1)
    write_head(attention, query, key, value, value, gain=gain)
    if "beta" in attention.learned:
        write_weakly(attention, gain * torch.ones(1, width))
    model.head.weight[:] = value
