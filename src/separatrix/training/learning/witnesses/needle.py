"""The needle: one head looks along the direction that the last token names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from separatrix.core.tensors import torch
from separatrix.training.learning.witnesses._base import Plan, Witness
from separatrix.training.learning.witnesses._codes import spread_codes
from separatrix.training.learning.witnesses._families import SPELLINGS, Family, cooling, family_of
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
    from separatrix.training.tasks.needle import Needle


class NeedleWitness(Witness):
    """The last token asks with u, the others answer with z, and what is passed on is the mark w.

    - Softmax: logits A <u, z_i> make it the Bayes rule itself. The last token looks at itself as well, but
      its mark is 0, which changes no sign. Sparse relatives of softmax get the same logits.
    - Sums: sum_i <u, z_i> w_i, whose sign is the best that second moments allow. Where a row is
      divided by its sum, the last token gives itself a large score, so that the sum is positive. A delta
      rule does the same with weak writes and with keys that are long in a channel nobody asks for.
    - Series: the kernel at logits A <u, z_i>. Since the marks add up to 0, that is the best mixture of
      sum_i <u, z_i> w_i and sum_i <u, z_i>² w_i.
    - Powers and rectified logits: those of <u, z_i> + c, with the c that is best on training samples.
    - Features: each channel has a direction r of its own. A key is how far z reaches along r beyond a
      threshold, and the query takes the channels whose r is near u.
    """

    name = "needle"
    mechanisms = SPELLINGS

    def plans(self, task: Needle, mechanism: Mechanism, setting: Setting) -> Sequence[Plan]:
        dz, keys = task.parameters.dz, setting.keys
        if setting.width < dz + 3 or keys < dz + 1:
            return []
        return [
            partial(_write, task=task, setting=setting, query=query, key=key)
            for query, key in _maps(task, mechanism, setting, keys)
        ]


def _maps(task: Needle, mechanism: Mechanism, setting: Setting, keys: int) -> Iterator[tuple[Matrix, Matrix]]:
    """Ways to make queries and keys from a token: z or u, the mark, whether it is the last, a constant 1."""
    dz, shift, n = task.parameters.dz, task.shift, task.parameters.n
    z, last = chosen_channels(setting.width, *range(dz)), chosen_channels(setting.width, dz + 1)
    one = _constant(task, setting).one
    family = family_of(mechanism)
    if family is Family.SHARP:
        yield shift * cooling(mechanism, n + 1) * z, z
    elif family is Family.SUM:
        own = 10 * n if mechanism.normalised else 0
        yield torch.cat([z, one]), torch.cat([z, own * last])
    elif family is Family.DELTA:
        yield z, torch.cat([z, FAR * one])
    elif family is Family.SERIES:
        yield shift * z, z
    elif family is Family.POWER or family is Family.RECTIFIED:
        sign = 1 if family is Family.POWER else -1
        for share in (0.0, 0.05, 0.1, 0.3, 0.5, 0.7):
            yield torch.cat([z, one]), torch.cat([z, sign * share * shift * one])
    elif family is Family.FEATURES:
        along = spread_codes(keys, dz) @ z if keys > dz else z
        for threshold, narrow in product((0.5, 0.7), (6, 12, 24)):
            yield narrow * (along - 0.6 * one), 3 * (along - threshold * shift * one)


def _write(model: Any, task: Needle, setting: Setting, query: Matrix, key: Matrix) -> None:
    dz, constant = task.parameters.dz, _constant(task, setting)
    mark, attention = chosen_channels(setting.width, dz), model.blocks[0].attention
    model.inputs.weight[: dz + 2] = torch.eye(dz + 2)
    model.inputs.bias[constant.channel] = constant.number
    write_head(attention, query, key, mark, mark, gain=constant.gain)
    if "beta" in attention.learned:
        write_weakly(attention, constant.gain * constant.one)
    model.head.weight[:] = torch.cat([-mark, mark])


def _constant(task: Needle, setting: Setting) -> Constant:
    """The channel after z, the mark and whether a token is the last."""
    return Constant(setting, task.parameters.dz + 2)
