"""What a task is learned with: the sizes of the model, and the steps of its training."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers.exact import parse_exact
from separatrix.core.parameters import Constraint, Exact, Flag, Natural, Parameters, UsageError


def at_least(least: int, *names: str) -> tuple[Constraint, ...]:
    """That each of some parameters is so large."""

    def constraint(name: str) -> Constraint:
        return Constraint(
            (name,),
            lambda p: getattr(p, name) >= least,
            lambda p: f"{name}={getattr(p, name)} must be {least} or more",
        )

    return tuple(map(constraint, names))


class Setting(Parameters):
    """The model (as `separatrix.layers.Model` takes it; 0 for none) and its training.

    A task has defaults of its own; every name can be given beside the parameters of the task.
    """

    owner = "the model and its training"
    width: Natural = 64
    heads: Natural = 1
    depth: Natural = 1
    key_width: Natural = 0
    """Of the queries and keys of a head; 0 for that of its values, width / heads."""
    mlp: Natural = 0
    conv: Natural = 0
    rope: Natural = 0
    norm: Flag = True
    out_norm: Flag = True
    batch: Natural = 32
    steps: Natural = 500
    warmup: Natural = 25
    rates: str = "0.001,0.003,0.01"
    """Learning rates to choose from by validation; one is taken as it is."""
    decay: Exact = Fraction(1, 100)
    """The weight decay of AdamW."""
    clip: Exact = Fraction(1)
    """The largest norm of a gradient."""
    every: Natural = 50
    """Steps between two looks at the validation data."""
    validation: Natural = 1024
    tests: Natural = 10000
    """How many samples there are to test with."""
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *at_least(1, "width", "heads", "depth", "batch", "steps", "every", "validation", "tests"),
        *at_least(0, "key_width", "mlp", "conv", "rope", "warmup", "decay"),
        Constraint(("clip",), lambda p: p.clip > 0, lambda p: f"clip={p.clip} must be above 0"),
        Constraint(
            ("width", "heads"),
            lambda p: p.width % p.heads == 0,
            lambda p: f"width={p.width} cannot be shared out among heads={p.heads}; it must be a multiple",
        ),
        Constraint(
            ("rates",),
            lambda p: bool(p.grid),
            lambda p: f"rates={p.rates} must be numbers above 0, with commas between them",
        ),
    )

    @property
    def keys(self) -> int:
        """The width of the queries and keys of a head, that of its values where none is given."""
        return self.key_width or self.width // self.heads

    @property
    def grid(self) -> tuple[Fraction, ...]:
        """The learning rates to choose from, in order; none where one of them is no number above 0.

        >>> Setting(rates="0.01,3e-3").grid
        (Fraction(3, 1000), Fraction(1, 100))
        """
        try:
            found = sorted({parse_exact(word, "rates") for word in self.rates.split(",")})
        except UsageError:
            return ()
        return tuple(found) if found[0] > 0 else ()
