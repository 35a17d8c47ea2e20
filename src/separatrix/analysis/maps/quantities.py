"""The quantities of maps: those of an outcome, and the accuracy of the best possible reader."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
import scipy

from separatrix.constructions import Construction, ExactConstruction
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.errors import EngineRefusal, UsageError
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Grid, read_words, require_known
from separatrix.exact.engines.amplitudes import float_values
from separatrix.exact.engines.closed import LARGEST_N
from separatrix.exact.outputs.kernels import with_kernel
from separatrix.exact.outputs.strongest import strongest_outputs
from separatrix.exact.verdicts.best_reader import BestReader, best_reader, parse_noise
from separatrix.mechanisms import Mechanism, ScoreMechanism

Array = np.ndarray[Any, Any]
Rows = Literal["one", "all"]

QUANTITIES = {
    "distinguish": "P(tells apart)",
    "fire_d0": "P(fires on D0)",
    "fire_d1": "P(fires on D1)",
    "margin": "margin",
    "bits": "bits",
}
"""The quantities of an outcome, with their names in pictures."""
PROBABILITIES = ("distinguish", "fire_d0", "fire_d1")
ACCURACY = "accuracy"
EXAMPLE = f"{ACCURACY}:noise=0.5"
FLOAT_EVIDENCE = "closed form of the rows' distance, in float64"


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of the best possible reader of one row, or of all rows, under Gaussian noise.

    >>> Accuracy.parse("accuracy:noise=1/2,rows=all").text
    'accuracy:noise=0.5,rows=all'
    """

    noise: Fraction
    rows: Rows = "one"

    @classmethod
    def parse(cls, text: str) -> Accuracy:
        """Parse `accuracy:noise=0.5` or `accuracy:noise=0.5,rows=all`."""
        _, _, words = text.partition(":")
        values = read_words(words.split(",") if words else [])
        unknown = next((name for name in values if name not in ("noise", "rows")), None)
        if unknown is not None:
            raise UsageError(f"{ACCURACY} has no {unknown}; it has noise and rows: {EXAMPLE},rows=all")
        if "noise" not in values:
            raise UsageError(f"{ACCURACY} needs the standard deviation of the noise; write {EXAMPLE}")
        rows = values.get("rows", "one")
        require_known("number of rows", rows, ("one", "all"))
        return cls(parse_noise(values["noise"]), cast(Rows, rows))

    @property
    def text(self) -> str:
        """The quantity as it is written."""
        return f"{ACCURACY}:noise={format_exact(self.noise)}{',rows=all' if self.rows == 'all' else ''}"

    @property
    def label(self) -> str:
        """The quantity in words."""
        rows = "one row" if self.rows == "one" else "all rows"
        return f"accuracy of the best reader of {rows}, noise sd {format_exact(self.noise)}"

    def at(self, construction: Construction, mechanism: Mechanism) -> tuple[float, BestReader]:
        """Return the accuracy, the least over the positions tried, and the reader's limits."""
        limits = [
            limit
            for outputs, _ in strongest_outputs(construction, mechanism)
            if (limit := best_reader(construction, mechanism, outputs, self.noise)) is not None
        ]
        if not limits:
            raise EngineRefusal(f"D0 and D1 have different numbers of rows on {construction.name}")
        return min(((self._accuracy_of(limit), limit) for limit in limits), key=lambda pair: pair[0])

    def _accuracy_of(self, limit: BestReader) -> float:
        accuracy = (limit.one_row if self.rows == "one" else limit.all_rows).accuracy
        assert accuracy is not None
        return accuracy

    def on_grid(self, kind: type[Construction], mechanism: Mechanism, grid: Grid) -> Array:
        """Return the accuracy at every point in float64, for rows in which all keys but the spike are alike.

        Raises an EngineRefusal elsewhere.
        """
        if kind not in (Spike, Cross) or issubclass(kind, ExactConstruction):
            raise EngineRefusal(f"{kind.name} has no closed form of the rows' distance")
        kernel, columns = with_kernel(mechanism), grid.columns(kind.schema)
        if max(columns["n"].flat) > LARGEST_N:
            raise EngineRefusal("floats end at n=1e300")
        if kind is Spike and {*np.ravel(columns["form"])} != {"ones"}:
            raise EngineRefusal("only form=ones has a closed form of the rows' distance")
        with np.errstate(over="ignore"):
            squares = _squares(kind, kernel, float_values(columns))
        n = np.asarray(float_values(columns)["n"])
        counts = (n,) if len(squares) == 1 else (np.ones(()), n - 1)
        if self.rows == "one":
            square = np.maximum.reduce(np.broadcast_arrays(*squares))
        else:
            square = sum(rows * x for rows, x in zip(counts, squares, strict=True))
        return np.broadcast_to(0.5 + 0.5 * scipy.special.erf(np.sqrt(square / 8) / float(self.noise)), grid.shape)


def _squares(kind: type[Construction], kernel: ScoreMechanism, values: dict[str, Any]) -> list[Array]:
    """Return the squared distance of D0 and D1 for each kind of row (theory 3.11)."""
    model = kind.block_model(values, np.log)
    assert model is not None
    n, d, (a0, a1), b = (np.asarray(values["n"]), np.asarray(values["d"]), model.amplitudes.a, model.amplitudes.b)
    log_others, squares = np.log(n - 1), []
    for row0, row1 in zip(*model.rows, strict=True):
        log0, log1 = (np.asarray(kernel.log_ratio(row.base, row.spike)) for row in (row0, row1))
        f0, f1, others = (1 / (1 + np.exp(x)) for x in (log_others - log0, log_others - log1, log0 - log_others))
        # f1 - f0 as a product: the difference would lose its digits where both are of order 1/n.
        gain = f1 * others * -np.expm1(log0 - log1) * n / (n - 1)
        squares.append((a1 * f1 - a0 * f0) ** 2 + b**2 * (d - 3) / (d - 2) * gain**2)
    return squares


def parse_quantity(text: str) -> str | Accuracy:
    """Return the name of a quantity of an outcome, or an accuracy."""
    if text.partition(":")[0] == ACCURACY:
        return Accuracy.parse(text)
    require_known("quantity", text, [*QUANTITIES, ACCURACY])
    return text


def quantity_label(text: str) -> str:
    """Return the name of a quantity in pictures."""
    return QUANTITIES[text] if text in QUANTITIES else Accuracy.parse(text).label
