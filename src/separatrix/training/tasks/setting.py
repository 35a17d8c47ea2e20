"""The setting of a task: sizes of the model and options of its training."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers.exact import parse_exact
from separatrix.core.parameters import Constraint, Exact, Flag, Natural, Parameters, UsageError, limit

WITHOUT_NORMS: dict[str, object] = {"width": 32, "norm": "no", "out_norm": "no"}
"""Sizes for tasks whose proofs need linear maps of the tokens."""
MANY_ANSWERS: dict[str, object] = {"validation": 256, "tests": 2000}
"""Sample counts for tasks that score many positions of each sample."""
SMALL_TRANSFORMER: dict[str, object] = {"depth": 2, "heads": 4, "mlp": 2, "rope": 10000}


class Setting(Parameters):
    """Sizes of `separatrix.layers.Model` (0 for none) and options of its training.

    A task has its own defaults; every name can be given along with the parameters of the task.
    """

    owner = "the model and its training"
    width: Natural = 64
    heads: Natural = 1
    depth: Natural = 1
    key_width: Natural = 0
    """Width of the queries and keys of a head; 0 for that of its values, width / heads."""
    mlp: Natural = 0
    conv: Natural = 0
    rope: Natural = 0
    norm: Flag = True
    out_norm: Flag = True
    batch: Natural = 32
    steps: Natural = 500
    warmup: Natural = 25
    rates: str = "0.001,0.003,0.01"
    """Learning rates to choose from by validation; a single one is used as it is."""
    decay: Exact = Fraction(1, 100)
    """Weight decay of AdamW."""
    clip: Exact = Fraction(1)
    """Largest norm of a gradient."""
    every: Natural = 50
    """Steps between two evaluations on the validation samples."""
    validation: Natural = 1024
    tests: Natural = 10000
    """Number of test samples."""
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *(limit(name, 1) for name in ("width", "heads", "depth", "batch", "steps", "every")),
        *(limit(name, 1) for name in ("validation", "tests")),
        *(limit(name, 0) for name in ("key_width", "mlp", "conv", "rope", "warmup", "decay")),
        Constraint(("clip",), lambda p: p.clip > 0, lambda p: f"clip={p.clip} must be above 0"),
        Constraint(
            ("width", "heads"),
            lambda p: p.width % p.heads == 0,
            lambda p: f"width={p.width} must be a multiple of heads={p.heads}",
        ),
        Constraint(
            ("rates",), lambda p: bool(p.grid), lambda p: f"rates={p.rates} must be comma-separated numbers above 0"
        ),
    )

    @property
    def keys(self) -> int:
        """The width of the queries and keys of a head."""
        return self.key_width or self.width // self.heads

    @property
    def grid(self) -> tuple[Fraction, ...]:
        """The learning rates in ascending order; empty if one of them is not a number above 0.

        >>> Setting(rates="0.01,3e-3").grid
        (Fraction(3, 1000), Fraction(1, 100))
        """
        try:
            rates = sorted({parse_exact(word, "rates") for word in self.rates.split(",")})
        except UsageError:
            return ()
        return tuple(rates) if rates[0] > 0 else ()
