"""The needle: one head attends along the direction that the last token gives."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from separatrix.core.tensors import torch
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.witnesses._base import TaskWitness
from separatrix.training.learning.witnesses._channels import ConstantChannel, Matrix, select_channels
from separatrix.training.learning.witnesses._codes import spread_codes
from separatrix.training.learning.witnesses._families import SPELLINGS, Family, family_of, logit_factor
from separatrix.training.learning.witnesses._writing import LONG_KEY, write_head, write_strength
from separatrix.training.tasks import Setting
from separatrix.training.tasks.needle import NeedleTask

QueryKeyMaps = tuple[Matrix, Matrix]


class NeedleWitness(TaskWitness):
    """The query of the last token is u, the keys of the others are z, and the values are the marks w.

    - Softmax: logits A <u, z_i> give the Bayes rule itself. The last token also attends to itself, but its
      mark is 0, which changes no sign. Sparse relatives of softmax get the same logits.
    - Sums: sum_i <u, z_i> w_i, whose sign is the best that second moments allow. If weights are divided by
      their sum, the last token gives itself a large score, so that the sum is positive. A delta rule does
      the same with weak writes and with keys that are long in a channel without queries.
    - Series: the kernel at logits A <u, z_i>. Since the marks sum to 0, that is the best mixture of
      sum_i <u, z_i> w_i and sum_i <u, z_i>² w_i.
    - Powers and rectified logits: those of <u, z_i> + c, with the best c on training samples.
    - Features: each channel has its own direction r. A key is the excess of z along r over a threshold, and
      the query selects the channels whose r is near u.
    """

    name = "needle"
    mechanisms = SPELLINGS

    def variants(self, task: NeedleTask, mechanism: Mechanism, setting: Setting) -> Iterator[QueryKeyMaps]:
        """Yield maps from the channels of a token: z or u, the mark, whether it is the last, a constant."""
        if setting.width < task.dz + 3 or setting.keys < task.dz + 1:
            return
        dz, shift, n, keys = task.dz, task.shift, task.n, setting.keys
        z, last = select_channels(setting.width, *range(dz)), select_channels(setting.width, dz + 1)
        unit = ConstantChannel(setting, dz + 2).unit
        family = family_of(mechanism)
        if family is Family.SHARP:
            yield shift * logit_factor(mechanism, n + 1) * z, z
        elif family is Family.SUM:
            self_score = 10 * n if mechanism.is_normalised else 0
            yield torch.cat([z, unit]), torch.cat([z, self_score * last])
        elif family is Family.DELTA:
            yield z, torch.cat([z, LONG_KEY * unit])
        elif family is Family.SERIES:
            yield shift * z, z
        elif family is Family.POWER or family is Family.RECTIFIED:
            sign = 1 if family is Family.POWER else -1
            for share in (0.0, 0.05, 0.1, 0.3, 0.5, 0.7):
                yield torch.cat([z, unit]), torch.cat([z, sign * share * shift * unit])
        elif family is Family.FEATURES:
            along = spread_codes(keys, dz) @ z if keys > dz else z
            for threshold, steepness in product((0.5, 0.7), (6, 12, 24)):
                yield steepness * (along - 0.6 * unit), 3 * (along - threshold * shift * unit)

    def write(self, model: Any, task: NeedleTask, setting: Setting, variant: QueryKeyMaps) -> None:
        dz, constant = task.dz, ConstantChannel(setting, task.dz + 2)
        mark, attention = select_channels(setting.width, dz), model.blocks[0].attention
        model.inputs.weight[: dz + 2] = torch.eye(dz + 2)
        model.inputs.bias[constant.channel] = constant.number
        write_head(attention, *variant, mark, mark, gain=constant.gain)
        write_strength(attention, constant.gain * constant.unit)
        model.head.weight[:] = torch.cat([-mark, mark])
