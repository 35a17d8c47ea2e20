"""Weights that fade with the gates between key and query."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._blocks import attend_by_blocks
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._positions import Causality, presence_mask
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Present, Queries, Values, Visible
from separatrix.mechanisms.kernels._streamed import softmax
from separatrix.mechanisms.recurrent._decay import Decays

Fade = Float[Tensor, "batch heads queries keys"]
"""The logs of the decay from key to query, 0 or less."""


class FadingMechanism(Mechanism):
    """`f_ij = softmax_j(<q_i,k_j> + log a_{j+1} + ... + log a_i)` over j up to i, with gates a in [0, 1].

    A gate of 0 is a reset, before which nothing is seen. An absent token fades nothing.
    """

    family = "positional"
    causality = Causality.ALWAYS
    permutation_equivariant = False
    takes_first = True
    takes_present = True

    @abstractmethod
    def decays(self, k: Keys, present: Present | None, extras: dict[str, Any]) -> Decays:
        """Return the sums of log gates up to each token, one per token and head."""

    def weights(
        self, q: Queries, k: Keys, fade: Fade, visible: Visible, positions: range, extras: dict[str, Any]
    ) -> Float[Tensor, "batch heads queries keys"]:
        """Return the weights of these keys, for queries at these positions."""
        return softmax(q @ k.mT + fade, visible.to(fade))

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        return self._attend(range(q.shape[-2]), q, k, v, self.decays(k, options.present, extras), options, extras)

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Compute blocks of queries, each with the keys up to its last: memory is linear in the tokens."""
        decays, dtype = self.decays(k, options.present, extras), k.dtype

        def attend(
            rows: range, q: Tensor, k: Tensor, v: Tensor, logs: Tensor, resets: Tensor | None, *values: Any
        ) -> Tensor:
            past = slice(0, options.first + rows.stop)
            present = None if options.present is None else options.present[:, past]
            past_decays = Decays(logs, resets, dtype).part(past)
            past_options, k, v = replace(options, present=present), k[..., past, :], v[..., past, :]
            return self._attend(rows, q, k, v, past_decays, past_options, dict(zip(extras, values, strict=True)))

        return attend_by_blocks(attend, q, k, v, decays.logs, decays.resets, *extras.values())

    def _attend(
        self, rows: range, q: Queries, k: Keys, v: Values, decays: Decays, options: CallOptions, extras: dict[str, Any]
    ) -> Attended:
        """Attend with the queries of these rows to the keys up to theirs."""
        positions = range(options.first + rows.start, options.first + rows.stop)
        visible = replace(options, present=presence_mask(options.present, k)).visible_keys(rows, k)
        assert visible is not None
        return self.weights(q, k, _fade(decays, positions), visible, positions, extras) @ v


def _fade(decays: Decays, positions: range) -> Fade:
    """Return the sum of log gates after each key up to each position; minus infinity across a reset.

    A position past the last key counts as the last: there are no gates beyond.
    """
    logs, resets = decays.logs, decays.resets
    rows = torch.arange(positions.start, positions.stop, device=logs.device).clamp(max=logs.shape[-2] - 1)
    span = (logs[..., rows, :] - logs.mT).to(decays.dtype)
    return span if resets is None else span.masked_fill(resets[..., rows, :] != resets.mT, -torch.inf)
