"""The model for a task: `separatrix.layers.Model` at the sizes of a setting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from separatrix.core.errors import UsageError, one_line
from separatrix.layers import Model
from separatrix.mechanisms import Causality, Mechanism, mechanism_from
from separatrix.mechanisms.drawn_weights import seed_unless_given
from separatrix.training.tasks import Setting, Task


def build_model(task: Task, mechanism: Mechanism | str, setting: Setting, seed: int = 0) -> Model:
    """Return the untrained model of a seed; torch's global generator is not changed.

    For one seed, all weights except those of learned extras (such as gates) are equal for all mechanisms. The
    model is causal unless the mechanism has no causal form.

    **Arguments:**

    - `task`: determines the inputs and the number of outputs.
    - `mechanism`: an object, or its name with parameters.
    - `setting`: the sizes of the model; 0 stands for none.
    - `seed`: of the initial weights.

    >>> from separatrix.training.tasks import task_named
    >>> needle = task_named("needle").read({"n": 16})
    >>> setting = needle.default_setting()
    >>> softmax, delta = (build_model(needle, name, setting) for name in ("softmax", "delta"))
    >>> softmax.head.weight.equal(delta.head.weight), delta.parameter_count - softmax.parameter_count
    (True, 128)
    """
    with seed_unless_given(seed):
        mechanism = mechanism_from(mechanism)  # the model trains a copy of a user's module
    with temporary_seed(seed):
        return Model(
            mechanism,
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
            causal=mechanism.causality is not Causality.NEVER,
            # Extras that are not per token, such as projections over positions, depend on the length.
            length=task.max_tokens if any(not extra.per_token for extra in mechanism.extras) else None,
        )


def require_device(name: str) -> None:
    """Raise a UsageError if a torch device is not available."""
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"device={name} is not available: {one_line(error, 120)}") from None


@contextmanager
def temporary_seed(seed: int) -> Iterator[None]:
    """Seed torch's global generator temporarily, and restore its state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
