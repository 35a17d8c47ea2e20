"""Recall and induction: a convolution places every token next to its predecessor, and a query finds it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from separatrix.core.tensors import torch
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.witnesses._base import Plan, TaskWitness
from separatrix.training.learning.witnesses._codes import QueryKeyCodes, retrieval_codes
from separatrix.training.learning.witnesses._families import SPELLINGS
from separatrix.training.learning.witnesses._writing import Matrix, shift_tokens, write_head, write_strength
from separatrix.training.tasks import Setting
from separatrix.training.tasks.induction import InductionTask
from separatrix.training.tasks.mqar import RecallTask


class RecallWitness(TaskWitness):
    """The stream has one channel for every symbol. Queries are codes of the token itself.

    Keys are codes of the previous token, by the convolution, and values are the token itself if it is one of
    the values: so each value in context has the code of its key, and all other tokens have the value 0. A
    query finds the value whose key has its code. The head reads the channels of the values.
    """

    name = "mqar"
    mechanisms = SPELLINGS

    def plans(self, task: RecallTask, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        fits = setting.width >= task.vocabulary and setting.width // setting.heads >= task.values
        if setting.conv < 2 or not fits:
            return []
        value = torch.eye(setting.width)[task.keys : task.vocabulary]
        ways = retrieval_codes(mechanism, task.keys, setting.keys, 3 * task.pairs)
        return [
            partial(
                _write, vocabulary=task.vocabulary, setting=setting, codes=codes, value=value, output=value
            )
            for codes in ways
        ]


class InductionWitness(TaskWitness):
    """One layer. Queries are codes of the token itself, keys of the previous token, by the convolution.

    So the last token finds the position after the earlier occurrence of its symbol. Values are the symbols
    themselves, and go to separate channels, which the head reads.
    """

    name = "induction"
    mechanisms = SPELLINGS

    def plans(self, task: InductionTask, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        symbols, width = task.symbols, setting.width
        if setting.conv < 2 or width < 2 * symbols or width // setting.heads < symbols:
            return []
        value, output = torch.eye(width)[:symbols], torch.eye(width)[symbols : 2 * symbols]
        ways = retrieval_codes(mechanism, symbols, setting.keys, task.n)
        return [
            partial(_write, vocabulary=symbols, setting=setting, codes=codes, value=value, output=output)
            for codes in ways
            if not codes.self_score
        ]


def _write(
    model: Any, vocabulary: int, setting: Setting, codes: QueryKeyCodes, value: Matrix, output: Matrix
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
