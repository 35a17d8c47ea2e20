"""Weights that are drawn when a class is made come from a seed: every command speaks of the same ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import torch
from separatrix.mechanisms.how_called import HowCalled, is_lazy

SEED = 0
"""Where none is given, but in layers."""


_unless_given: ContextVar[int] = ContextVar("seed of weights", default=SEED)


@contextmanager
def seed_unless_given(seed: int) -> Iterator[None]:
    """Draw weights from this seed where a mechanism names none: every layer of a model has its own."""
    before = _unless_given.set(seed)
    try:
        yield
    finally:
        _unless_given.reset(before)


def usual_seed() -> int:
    """The seed where none is given."""
    return _unless_given.get()


class Draws:
    """Whether random numbers of a seed were used. Python's own do not count: type checkers draw them."""

    used = False


@contextmanager
def seeded(seed: int = SEED) -> Iterator[Draws]:
    """Random numbers of torch, NumPy and Python from a seed; afterwards all generators are as they were.

    What seeds torch itself uses none of ours.

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
            np.random.seed(seed % 2**32)
            torch.manual_seed(seed)
            start = _states()
            yield draws
            draws.used = _states() != start and torch.initial_seed() == seed
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def _states() -> tuple[object, ...]:
    return str(np.random.get_state()), torch.get_rng_state().numpy().tobytes()


def draw(make: Callable[[], Any], name: str, how: Mapping[str, object]) -> tuple[Any, dict[str, object]]:
    """What `make` makes with the seed in `how`, and how it is called: with that seed, if it was used."""
    given = HowCalled.read({each: how[each] for each in ("seed",) if each in how}, name).seed
    seed = usual_seed() if given is None else given
    with seeded(seed) as draws:
        made = make()
    if draws.used:
        return made, {**how, "seed": seed}
    if given is not None and not is_lazy(made):
        raise UsageError(
            f"{name} draws no weights when it is made, so that seed={seed} would change nothing; leave it out"
        )
    return made, dict(how)
