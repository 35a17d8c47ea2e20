"""PaTH: softmax over keys that every later token has changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._blocks import attend_by_blocks
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._positions import Causality, presence_mask
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.extras import DIRECTIONS, PATH_BETA
from separatrix.mechanisms.kernels._streamed import softmax
from separatrix.mechanisms.recurrent._delta_rule import Betas, solve_writes, unit

CHUNK = 32
"""Tokens whose changes are applied at once."""


class Path(Mechanism):
    """`f_ij = softmax_j(q_iᵀ H_i H_{i-1} ... H_{j+1} k_j)` over j up to i, `H_t = I - beta_t w_t w_tᵀ`.

    Each token changes all keys before it along one direction: beta = 1 removes it, 2 reflects it, and 0 is
    softmax. Rotary positions are a product of matrices, too, which do not depend on the tokens. In the paper
    (arXiv 2505.16381) both are learned from the tokens: `w` of shape (batch, heads, tokens, width), which is
    scaled to length 1 (zeros stay zeros), and `beta` of shape (batch, heads, tokens, 1), between 0 and 2. If
    they are not given, w is the key, so that the latest of similar keys gets the weight, and beta is the
    parameter. Unnormalised, with beta_j on v_j, that is the delta rule. Left out are the 1/sqrt(width) on
    logits, and the forget gate of PaTH-FoX. An absent token changes nothing.

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
    takes_first = True
    takes_present = True
    extras = (DIRECTIONS, PATH_BETA)
    beta: Fraction = exact(1, at_least=0, at_most=2)
    """How much each token changes the keys before it."""

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        first, copies = options.first, presence_mask(options.present, k)[:, None, None].to(k)
        w, beta = unit(extras["w"].to(k))[..., None], extras["beta"].to(k)[..., None]
        identity = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
        keys, out = k[..., :0, :], [v[..., :0, :]]
        for t in range(first + q.shape[-2]):
            if t < k.shape[-2]:
                change = identity - beta[..., t, :, :] * w[..., t, :, :] @ w[..., t, :, :].mT
                keys = torch.cat([keys @ change, k[..., t : t + 1, :]], dim=-2)
            if t >= first:
                logits = q[..., t - first : t - first + 1, :] @ keys.mT
                number = keys.shape[-2]
                out.append(softmax(logits, copies[..., :number]) @ v[..., :number, :])
        return torch.cat(out, dim=-2)

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Take queries back through the keys, a chunk at a time, and change them by each in one product."""
        chunks = build_chunks(k, unit(extras["w"].to(k)), extras["beta"].to(k))
        present = presence_mask(options.present, k)

        def attend(rows: range, q: Tensor, k: Tensor, v: Tensor, *parts: Tensor) -> Tensor:
            past = slice(0, min(options.first + rows.stop, k.shape[-2]))
            visible = replace(options, present=present[:, past]).visible_keys(rows, k[..., past, :])
            assert visible is not None
            logits = WYChunks(*parts).logits(q, options.first + rows.start)
            return softmax(logits[..., past], visible.to(logits)) @ v[..., past, :]

        return attend_by_blocks(attend, q, k, v, chunks.k, chunks.w, chunks.x, chunks.y)


@dataclass(frozen=True)
class WYChunks:
    """The changes of each chunk of tokens as one product, `H_C ... H_1 = I - Wᵀ Y`: the WY form.

    A query with `h = q Wᵀ` becomes `q - h Y`, and its logits with the keys of the chunk, each changed only by
    those after it, are `q kᵀ - h X`.
    """

    k: Tensor
    w: Tensor
    x: Tensor
    y: Tensor

    def logits(self, q: Queries, first: int) -> Float[Tensor, "batch heads queries keys"]:
        """Return the logits of queries from position `first` on with all keys up to the chunk of the last."""
        number_of_chunks = min(len(self.k), -(-(first + q.shape[-2]) // CHUNK))
        query_positions = torch.arange(first, first + q.shape[-2], device=q.device)[:, None]
        logits = []
        # From the last chunk back: later tokens change a query before it meets an earlier key.
        for number in reversed(range(number_of_chunks)):
            overlap = q @ self.w[number].mT
            if (number + 1) * CHUNK > first + 1:
                key_positions = torch.arange(number * CHUNK, (number + 1) * CHUNK, device=q.device)
                # Tokens after a query do not change its keys.
                overlap = overlap.where(key_positions <= query_positions, 0)
            logits.append(q @ self.k[number].mT - overlap @ self.x[number])
            q = q - overlap @ self.y[number]
        return torch.cat(logits[::-1], dim=-1)


def build_chunks(k: Keys, w: Keys, beta: Betas) -> WYChunks:
    """Return the chunks of all tokens, from their keys, directions of length 1, and betas."""
    batch = len(k)
    k, w, beta = (_split_chunks(x) for x in (k, w, beta))
    overlaps = (w @ k.mT).tril(-1)
    # Both right-hand sides of one triangular system: the first gives X, the second Y.
    solution = solve_writes(w @ w.mT, torch.cat([overlaps, w], dim=-1), beta)
    parts = (k, w, solution[..., :CHUNK], solution[..., CHUNK:])
    return WYChunks(*(part.reshape(-1, batch, *part.shape[1:]) for part in parts))


def _split_chunks(x: Float[Tensor, "batch heads keys width"]) -> Float[Tensor, "chunks heads size width"]:
    """Split tokens into chunks, the last one filled up with zeros, which change nothing."""
    x = functional.pad(x, (0, 0, 0, -x.shape[-2] % CHUNK))
    return x.reshape(*x.shape[:2], -1, CHUNK, x.shape[-1]).movedim(2, 0).flatten(0, 1)
