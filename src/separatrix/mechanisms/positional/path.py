"""PaTH: softmax over keys that every token since has changed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Parameters
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import (
    Attended,
    Causality,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    by_blocks_of_queries,
    form,
    seen_keys,
)
from separatrix.mechanisms._places import which_present
from separatrix.mechanisms.extras import DIRECTIONS, PATH_BETA
from separatrix.mechanisms.kernels._streamed import softmax_of
from separatrix.mechanisms.recurrent.delta import Betas, solved, unit

CHUNK = 32
"""Tokens whose changes are applied at once."""


class PathParameters(Parameters):
    """By how much each token changes the keys before it."""

    owner = "path"
    beta: Exact = Fraction(1)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("beta",),
            lambda p: 0 <= p.beta <= 2,
            lambda p: f"beta={format_exact(p.beta)} is out of range; beta must be between 0 and 2",
        ),
    )


class Path(Mechanism):
    """`f_ij = softmax_j(q_iᵀ H_i H_{i-1} ... H_{j+1} k_j)` over j up to i, `H_t = I - beta_t w_t w_tᵀ`.

    Each token changes all keys before it along one direction: beta = 1 takes it out, 2 reflects it, and 0 is
    softmax. Rotary positions are a product of matrices, too, which do not depend on the tokens. In the paper
    (arXiv 2505.16381) both are learned from the tokens: `w` of shape (batch, heads, tokens, width), which is
    scaled to length 1 (zeros stay zeros), and `beta` of shape (batch, heads, tokens, 1), between 0 and 2.
    Where they are not given, w is the key, so that the latest of alike keys is the one that is found, and
    beta is the parameter. Unnormalised, with beta_j on v_j, that is the delta rule. Left out are the
    1/sqrt(width) on logits, and the forget gate of PaTH-FoX. An absent token changes nothing.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one, v = torch.full((1, 1, 3, 1), 9.0), torch.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("path")(one, one, v, causal=True).flatten().tolist()
    [1.0, 2.0, 3.0]
    >>> mechanism_named("path:beta=0")(one, one, v, causal=True).flatten().tolist()
    [1.0, 1.5, 2.0]
    """

    name = "path"
    formula = "softmax(q_i^T H_i ... H_{j+1} k_j) over j <= i, H_t = I - beta w_t w_t^T, w_t = k_t/|k_t|"
    source = "[rec] arXiv 2505.16381, with w and beta that are not learned"
    family = "positional"
    causality = Causality.ALWAYS
    permutation_equivariant = False
    takes_counts = False
    takes_first = True
    takes_present = True
    schema = PathParameters
    parameters: PathParameters
    extras = (DIRECTIONS, PATH_BETA)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        first, there = more.get("first", 0), which_present(more.get("present"), k)[:, None, None].to(k)
        w, beta = unit(more["w"].to(k))[..., None], more["beta"].to(k)[..., None]
        identity = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
        keys, out = k[..., :0, :], [v[..., :0, :]]
        for t in range(first + q.shape[-2]):
            if t < k.shape[-2]:
                change = identity - beta[..., t, :, :] * w[..., t, :, :] @ w[..., t, :, :].mT
                keys = torch.cat([keys @ change, k[..., t : t + 1, :]], dim=-2)
            if t >= first:
                logits = q[..., t - first : t - first + 1, :] @ keys.mT
                number = keys.shape[-2]
                out.append(softmax_of(logits, there[..., :number]) @ v[..., :number, :])
        return torch.cat(out, dim=-2)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """Queries go back through the keys, a chunk at a time, and are changed by each in one product."""
        chunks = chunks_of(k, unit(more["w"].to(k)), more["beta"].to(k))
        attend = partial(_rows, more.get("first", 0), more.get("present"))
        return by_blocks_of_queries(attend, q, k, v, chunks.k, chunks.w, chunks.x, chunks.y)


def _rows(
    first: int, present: Tensor | None, rows: range, q: Tensor, k: Tensor, v: Tensor, *chunks: Tensor
) -> Tensor:
    """What the queries of these rows read."""
    past = slice(0, min(first + rows.stop, k.shape[-2]))
    there = which_present(None if present is None else present[:, past], k[..., past, :])
    seen = seen_keys(rows, k[..., past, :], True, first, there)
    assert seen is not None
    logits = Chunks(*chunks).logits(q, first + rows.start)
    return softmax_of(logits[..., past], seen.to(logits)) @ v[..., past, :]


@dataclass(frozen=True)
class Chunks:
    """The changes of each chunk of tokens as one product, `H_C ... H_1 = I - Wᵀ Y`: the WY form.

    A query that hears `h = q Wᵀ` becomes `q - h Y`, and its logits with the keys of the chunk, each changed
    by those after it only, are `q kᵀ - h X`.
    """

    k: Tensor
    w: Tensor
    x: Tensor
    y: Tensor

    def logits(self, q: Queries, place: int) -> Float[Tensor, "batch heads queries keys"]:
        """Of queries from a place on with all keys up to the chunk of the last, seen or not."""
        last = min(len(self.k), -(-(place + q.shape[-2]) // CHUNK))
        places = torch.arange(place, place + q.shape[-2], device=q.device)[:, None]
        found = []
        for number in reversed(range(last)):
            heard = q @ self.w[number].mT
            if (number + 1) * CHUNK > place + 1:
                here = torch.arange(number * CHUNK, (number + 1) * CHUNK, device=q.device)
                heard = heard.where(here <= places, 0)
            found.append(q @ self.k[number].mT - heard @ self.x[number])
            q = q - heard @ self.y[number]
        return torch.cat(found[::-1], dim=-1)


def chunks_of(k: Keys, w: Keys, beta: Betas) -> Chunks:
    """The chunks of all tokens, from their keys, directions of length 1, and betas."""
    batch = len(k)
    k, w, beta = (_chunked(x) for x in (k, w, beta))
    heard = (w @ k.mT).tril(-1)
    both = solved(w @ w.mT, torch.cat([heard, w], dim=-1), beta)
    parts = (k, w, both[..., :CHUNK], both[..., CHUNK:])
    return Chunks(*(part.reshape(-1, batch, *part.shape[1:]) for part in parts))


def _chunked(x: Float[Tensor, "batch heads keys width"]) -> Float[Tensor, "chunks heads size width"]:
    """All chunks, the last one filled up with zeros, which change nothing; those of a place side by side."""
    x = functional.pad(x, (0, 0, 0, -x.shape[-2] % CHUNK))
    return x.reshape(*x.shape[:2], -1, CHUNK, x.shape[-1]).movedim(2, 0).flatten(0, 1)
