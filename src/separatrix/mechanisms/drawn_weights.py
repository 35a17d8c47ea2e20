"""Seeds for the random weights that a mechanism draws in its constructor: all commands use the same ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from separatrix.core.contexts import set_within
from separatrix.core.parameters import UsageError
from separatrix.core.tensors import torch
from separatrix.mechanisms.how_called import HowCalled, is_lazy

SEED = 0
"""The seed if none is given. Layers of a model have seeds of their own, see `seed_unless_given`."""

_default_seed: ContextVar[int] = ContextVar("seed of weights", default=SEED)


def seed_unless_given(seed: int) -> AbstractContextManager[None]:
    """Use this seed within the block for mechanisms without one; each layer of a model has another."""
    return set_within(_default_seed, seed)


def usual_seed() -> int:
    """Return the seed of mechanisms without an explicit one."""
    return _default_seed.get()


class Draws:
    """Whether numbers of torch or NumPy were drawn, known at the end of the block.

    Python's `random` does not count, since checkers of types at run time use it.
    """

    used = False


@contextmanager
def seeded(seed: int = SEED) -> Iterator[Draws]:
    """Seed torch, NumPy and Python within the block, and restore the states of their CPU generators after it.

    Code that seeds torch with another number itself counts as not using this seed.

    >>> with seeded(3) as draws:
    ...     first = torch.rand(2)
    >>> with seeded(3):
    ...     first.equal(torch.rand(2)), draws.used
    (True, True)
    """
    before, draws = (random.getstate(), np.random.get_state()), Draws()
    try:
        with torch.random.fork_rng(devices=[]):
            random.seed(seed)
            np.random.seed(seed % 2**32)  # NumPy takes 32 bits
            torch.manual_seed(seed)
            start = _states()
            yield draws
            draws.used = _states() != start and torch.initial_seed() == seed
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def _states() -> tuple[object, ...]:
    return str(np.random.get_state()), torch.get_rng_state().numpy().tobytes()


def draw(make: Callable[[], Any], name: str, options: Mapping[str, object]) -> tuple[Any, dict[str, object]]:
    """Call `make` with the seed in `options`.

    Return the new object, and the options with the seed, if random numbers were drawn.
    """
    explicit_seed = HowCalled.read({"seed": options["seed"]} if "seed" in options else {}, name).seed
    seed = usual_seed() if explicit_seed is None else explicit_seed
    with seeded(seed) as draws:
        instance = make()
    if draws.used:
        return instance, {**options, "seed": seed}
    # A lazy module draws its weights in its first call.
    if explicit_seed is not None and not is_lazy(instance):
        raise UsageError(f"{name} draws no random weights when it is created, so seed={seed} has no effect; remove it")
    return instance, dict(options)
