"""Recall and induction: a convolution places every token next to its predecessor, and a query finds it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from separatrix.core.tensors import torch
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.witnesses._base import TaskWitness
from separatrix.training.learning.witnesses._channels import Matrix
from separatrix.training.learning.witnesses._codes import QueryKeyCodes, retrieval_codes
from separatrix.training.learning.witnesses._families import SPELLINGS
from separatrix.training.learning.witnesses._writing import shift_tokens, write_head, write_strength
from separatrix.training.tasks import Setting
from separatrix.training.tasks.induction import InductionTask
from separatrix.training.tasks.mqar import RecallTask

Codes = Iterator[QueryKeyCodes]


class RecallWitness(TaskWitness):
    """The stream has one channel for every symbol. Queries are codes of the token itself.

    Keys are codes of the previous token, by the convolution, and values are the token itself if it is one of
    the values: so each value in context has the code of its key, and all other tokens have the value 0. A
    query finds the value whose key has its code. The head reads the channels of the values.
    """

    name = "mqar"
    mechanisms = SPELLINGS

    def variants(self, task: RecallTask, mechanism: Mechanism, setting: Setting) -> Codes:
        fits = setting.width >= task.vocabulary and setting.width // setting.heads >= task.values
        if setting.conv >= 2 and fits:
            yield from retrieval_codes(mechanism, task.keys, setting.keys, 3 * task.pairs)

    def write(self, model: Any, task: RecallTask, setting: Setting, variant: QueryKeyCodes) -> None:
        value = torch.eye(setting.width)[task.keys : task.vocabulary]
        _write_codes(model, setting, task.vocabulary, variant, value, value)


class InductionWitness(TaskWitness):
    """One layer. Queries are codes of the token itself, keys of the previous token, by the convolution.

    So the last token finds the position after the earlier occurrence of its symbol. Values are the symbols
    themselves, and go to separate channels, which the head reads.
    """

    name = "induction"
    mechanisms = SPELLINGS

    def variants(self, task: InductionTask, mechanism: Mechanism, setting: Setting) -> Codes:
        fits = setting.width >= 2 * task.symbols and setting.width // setting.heads >= task.symbols
        if setting.conv >= 2 and fits:
            ways = retrieval_codes(mechanism, task.symbols, setting.keys, task.n)
            yield from (codes for codes in ways if not codes.self_score)

    def write(self, model: Any, task: InductionTask, setting: Setting, variant: QueryKeyCodes) -> None:
        symbols, channels = task.symbols, torch.eye(setting.width)
        _write_codes(model, setting, symbols, variant, channels[:symbols], channels[symbols : 2 * symbols])


def _write_codes(
    model: Any, setting: Setting, vocabulary: int, codes: QueryKeyCodes, value: Matrix, output: Matrix
) -> None:
    attention, symbols = model.blocks[0].attention, len(codes.query)
    gain = 1 / math.sqrt(setting.width) if setting.norm else 1.0
    model.inputs.weight[:, :vocabulary] = torch.eye(vocabulary)
    query, key = (torch.zeros(code.shape[1], setting.width) for code in (codes.query, codes.key))
    query[:, :symbols], key[:, :symbols] = codes.query.T, codes.key.T
    shift_tokens(attention, 1)
    if codes.self_score:
        key[-1, :symbols] = codes.self_score
        shift_tokens(attention, 1, 0, channel=len(key) - 1)
    write_head(attention, query, key, value, output, gain=gain)
    write_strength(attention, gain * torch.ones(1, setting.width))
    model.head.weight[:] = output
