"""The plain case: softmax regression, in which a token has a score and a sign and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.constructions._base import (
    MAX_AMPLITUDE,
    Amplitudes,
    BlockModel,
    Construction,
    Exchangeable,
    Label,
    Presence,
    Probe,
    QueryRow,
    Tokens,
    amplitude,
    reader_threshold,
    sign_vector_count,
)
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, exact, natural
from separatrix.core.tensors import torch


class Plain(Construction):
    """n scores are equal (D0), or one of them is 4 log n (D1).

    n tokens with scores z. In D0 every z is log base (base=1.5), or spread evenly over [log(base-spread),
    log(base+spread)]; in D1 one of them is peak*log n (peak=4). The reader holds m sign vectors of length n
    and the constant threshold tau=1/4. Margins are measured on the weight of the one token, without a unit.
    """

    name = "plain"
    section = (4,)
    provenance = "[rec] docs/theory.md 4"
    has_certificates = True
    n: int = natural(at_least=3, at_most=10**300)
    m: int = sign_vector_count()
    peak: Fraction = amplitude(4)
    base: Fraction = exact("3/2", at_most=MAX_AMPLITUDE)
    spread: Fraction = exact(0, at_least=0)
    tau: Fraction = reader_threshold("1/4")
    relations = (
        Constraint(
            ("base", "spread"),
            lambda p: p.base - p.spread > 1,
            lambda p: (
                f"base={format_exact(p.base)} less spread={format_exact(p.spread)} must stay above 1, "
                "so that every score is positive"
            ),
        ),
    )

    @property
    def exchangeable(self) -> Exchangeable:
        """With spread every token has a score of its own, and the peak replaces one of them."""
        return Exchangeable.NOT if self.spread else Exchangeable.TOKENS

    @property
    def signs(self) -> int:
        return self.n

    def dense_width(self) -> int:
        return 1

    @property
    def has_groups(self) -> bool:
        return not self.spread

    def group_count(self) -> int:
        return 2

    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        base, spread = float(self.base), float(self.spread)
        scores = torch.linspace(math.log(base - spread), math.log(base + spread), self.n, dtype=torch.float64)
        if label:
            scores[spike] = float(self.peak) * math.log(self.n)
        return self._tokens(scores, spike, dtype, None)

    def token_groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        ordinary = math.log(self.base)
        peak = float(self.peak) * math.log(self.n)
        scores = torch.tensor([peak if label else ordinary, ordinary], dtype=torch.float64)
        counts = torch.tensor([float(count) for count in self.group_counts(label)], dtype=dtype)
        return self._tokens(scores, 0, dtype, counts)

    def group_counts(self, label: Label) -> tuple[int, ...]:
        return 1, self.n - 1

    @staticmethod
    def _tokens(scores: torch.Tensor, spike: int, dtype: torch.dtype, counts: torch.Tensor | None) -> Tokens:
        keys = scores.to(dtype)[:, None]
        probe = torch.zeros(len(keys), dtype=dtype)
        probe[spike] = 1
        return Tokens(torch.ones(1, 1, dtype=dtype), keys, None, probe, counts)

    def group_signs(self, rng: np.random.Generator, columns: int, counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        # The sum of k random signs is 2 Bin(k, 1/2) - k, so a group of any size takes one draw.
        trials = counts.astype("int64")[:, None]
        mean: np.ndarray[Any, Any] = 2 * rng.binomial(trials, 0.5, (len(counts), columns)) / trials - 1
        return mean

    @classmethod
    def amplitudes(cls, values: Mapping[str, Any]) -> Amplitudes:
        zero = 0 * values["tau"]
        return Amplitudes((zero, zero), zero + 1, zero, values["tau"])

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel | None:
        """Return the closed form: n blocks of one token each."""
        # On a grid `spread` is an array.
        if np.any(values["spread"] != 0):
            return None
        base, high = log(values["base"]), values["peak"] * log(values["n"])
        level, peak = 0 * base, high - base
        flat, spiked = ((QueryRow("query", Presence.ALWAYS, base, step, level, level),) for step in (level, peak))
        zero, unit = 0 * values["n"], 0 * values["n"] + 1
        probe = Probe(zero, (unit, unit))
        off = 0.0
        if isinstance(base, np.ndarray | float):
            # log base may be near 0, and peak log n may nearly cancel it: both lose digits.
            with np.errstate(divide="ignore"):
                off = np.finfo(float).eps * (1 / base + 2 * (1 + high + base) / np.abs(peak))
        return BlockModel(values["n"] - 1, unit, cls.amplitudes(values), probe, (flat, spiked), off)
