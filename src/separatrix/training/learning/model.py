"""The model that a task is learned with: the one `separatrix.layers.Model`, at the sizes of a setting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from separatrix.layers import Model
from separatrix.mechanisms import Causality, Mechanism, mechanism_from
from separatrix.mechanisms.drawn_weights import seed_unless_given
from separatrix.training.tasks import Setting, Split, Task


def model_for(task: Task, mechanism: Mechanism | str, setting: Setting, seed: int = 0) -> Model:
    """The model of a seed before training; the generator of the caller is left as it is.

    For one seed all weights but those of learned extras (gates and their kin) are equal whatever the
    mechanism. It is causal unless the mechanism has no causal form.

    **Arguments:**

    - `task`: says what comes in and how many numbers go out.
    - `mechanism`: an object, or its name with parameters.
    - `setting`: the sizes of the model; 0 stands for none.
    - `seed`: of the initial weights.

    >>> from separatrix.training.tasks import task_named
    >>> needle = task_named("needle").read({"n": 16})
    >>> softmax, delta = (model_for(needle, name, needle.default_setting()) for name in ("softmax", "delta"))
    >>> softmax.head.weight.equal(delta.head.weight), delta.parameter_count - softmax.parameter_count
    (True, 128)
    """
    with seed_unless_given(seed):
        found = mechanism_from(mechanism)  # a module comes into the model as a copy: it is to be trained
    with _seeded(seed):
        return Model(
            found,
            setting.width,
            setting.heads,
            depth=setting.depth,
            outputs=task.outputs,
            vocabulary=task.vocabulary,
            features=task.features,
            key_width=setting.key_width or None,
            mlp=setting.mlp or None,
            conv=setting.conv or None,
            rope=setting.rope or None,
            norm=setting.norm,
            out_norm=setting.out_norm,
            causal=found.causality is not Causality.NEVER,
            length=tokens_of(task) if any(not extra.per_token for extra in found.extras) else None,
        )


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def tokens_of(task: Task) -> int:
    """The most tokens that an input of the task has, in any split."""
    return max(int(task.samples(1, split).inputs.shape[1]) for split in Split)
