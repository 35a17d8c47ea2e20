"""The paper's construction: one token of n stands out by its first coordinate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from separatrix.constructions._base import BlockModel, Exchangeable, Label, Presence, QueryRow, Tokens
from separatrix.constructions._blocks import EXAMPLE, BlockConstruction
from separatrix.core.parameters import choice
from separatrix.core.tensors import Tensor


class Spike(BlockConstruction):
    """One token in n has a first coordinate of a1 (D1) instead of a0 (D0).

    n = (d-2)t tokens of width d, in units of sqrt(log n). Column 1 is the spike: a0 in D0, a1 in D1, in a
    single row and 0 elsewhere. Columns 2 to d-1 hold b in the column of the row's block. Column d is c
    everywhere. Queries, keys and values are all this matrix; form=ones scores with X = 11ᵀ (products of row
    sums), form=identity with X = I (inner products). The reader's threshold is tau = c + 0.1 unless tau is
    given, in the same units.
    """

    name = "spike"
    section: ClassVar[tuple[int, ...]] = (3,)
    provenance = "[paper] n=(d-2)t, a0, a1, c, tau; [rec] the shape of A and X=11ᵀ; [ours] X=I"
    variants: ClassVar[tuple[dict[str, object], ...]] = ({"form": "ones"}, {"form": "identity"})
    example: ClassVar[dict[str, object]] = EXAMPLE
    has_certificates = True
    form: str = choice("ones", "identity", default="ones")

    @property
    def exchangeable(self) -> Exchangeable:
        """With X = I the columns of blocks are also coordinates of queries and keys."""
        return Exchangeable.TOKENS if self.form == "ones" else Exchangeable.COORDINATES

    def query_counts(self, label: Label) -> tuple[int, ...]:
        """Every token is a query too."""
        return self.group_counts(label)

    def tokens(self, matrix: Tensor, spike: int, counts: Tensor | None = None) -> Tokens:
        """Return the rows with Q and K such that X = Q Kᵀ: the row sums, or the rows themselves."""
        sums = matrix.sum(-1)
        keys = sums[:, None] if self.form == "ones" else matrix
        return Tokens(keys, keys, matrix, sums, counts)

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel | None:
        n, d, b, c = values["n"], values["d"], values["b"], values["c"]
        make_rows = _ones_rows if values["form"] == "ones" else _identity_rows
        log_n = log(n)
        rows = (make_rows(values["a0"], b, c, log_n), make_rows(values["a1"], b, c, log_n))
        return BlockModel(d - 3, n / (d - 2), cls.amplitudes(values), cls.probe(values), rows)


def _ones_rows(a: Any, b: Any, c: Any, log_n: Any) -> tuple[QueryRow, ...]:
    """Logits are products of row sums: R = a+b+c for the spike, r = b+c for the other rows."""
    # A zero in the arithmetic of log n: a float, an array, a ball or a sum of logarithms.
    zero, r = 0 * log_n, b + c
    return (
        QueryRow("spike", Presence.ALWAYS, (a + r) * r * log_n, (a + r) * a * log_n, zero, zero),
        QueryRow("rest", Presence.ALWAYS, r * r * log_n, r * a * log_n, zero, zero),
    )


def _identity_rows(a: Any, b: Any, c: Any, log_n: Any) -> tuple[QueryRow, ...]:
    """Logits are inner products: a² if both are the spike, b² within a block, c² everywhere."""
    zero, base, block = 0 * log_n, c * c * log_n, b * b * log_n
    return (
        QueryRow("spike", Presence.ALWAYS, base, (a * a + b * b) * log_n, block, zero),
        QueryRow("mate", Presence.MATES, base, block, block, zero),
        QueryRow("other", Presence.OTHER, base, zero, zero, block),
    )
