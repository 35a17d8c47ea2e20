"""Drawing the reader's signs: what the dense and the grouped engine share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import betaincinv
from torch import Tensor

from separatrix.constructions import Construction, Label, Tokens
from separatrix.engines._base import EngineRefusal, Outcome
from separatrix.mechanisms import Causality, Mechanism
from separatrix.parameters import UsageError

ELEMENTS = 1 << 22
"""Pre-activations held at once."""
CACHED = 1 << 20
"""Numbers in a batch of token sets: more than the cache holds are no faster."""
SLACK = 64
"""A pre-activation within this many units of rounding of the threshold is too close to call."""
MOST_DRAWS = 10_000_000
DTYPES = ("float64", "float32", "float16", "bfloat16")
FIRST_LOOK = 25
EARLY_DOUBT = 0.2
"""Draws before the first look, and the share of the doubt that goes to looks before the last."""


COUNTED, LITERAL = 6400, 400
"""The most draws with token groups, which cost little, and with literal tokens: just enough for a verdict."""


def enough_draws(construction: Construction, mechanism: Mechanism) -> int:
    """The most draws for one verdict, where the drawing stops once it is decided."""
    return COUNTED if mechanism.takes_counts and construction.has_groups else LITERAL


@dataclass(frozen=True)
class Sampling:
    """How many draws of the reader's signs, from which seed, in which number format."""

    draws: int = 400
    seed: int = 0
    confidence: float = 0.95
    dtype: str = "float64"
    decide: tuple[Fraction, ...] = ()
    """Probabilities: no more draws once the interval lies to one side of each of them."""

    def __post_init__(self) -> None:
        if not isinstance(self.draws, int) or not 1 <= self.draws <= MOST_DRAWS:
            limits = f"a whole number, 1 to {MOST_DRAWS:,}"
            raise UsageError(f"draws={self.draws} is out of range; it must be {limits}")
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence={self.confidence} is out of range; it must lie between 0 and 1")
        if self.seed < 0:
            raise UsageError(f"seed={self.seed} is negative; seeds start at 0")
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype={self.dtype} is not one of {', '.join(DTYPES)}")

    @property
    def torch_dtype(self) -> torch.dtype:
        """The number format as torch names it."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype

    def looks(self) -> list[tuple[int, float]]:
        """After how many draws the interval is looked at, and its confidence then.

        The doubts of all looks add up to 1 - confidence, so all their intervals hold at once with that
        confidence (Bonferroni), and it does not matter at which of them the drawing stops.

        >>> Sampling(draws=100, decide=(Fraction(1, 100),)).looks()
        [(25, 0.995), (50, 0.995), (100, 0.96)]
        """
        early: list[int] = []
        while self.decide and FIRST_LOOK << len(early) < self.draws:
            early.append(FIRST_LOOK << len(early))
        if not early:
            return [(self.draws, self.confidence)]
        doubt = 1 - self.confidence
        each, last = EARLY_DOUBT * doubt / len(early), (1 - EARLY_DOUBT) * doubt
        return [*((draws, 1 - each) for draws in early), (self.draws, 1 - last)]


class View:
    """What a mechanism makes of one set of tokens, seen through sign vectors."""

    def __init__(self, mechanism: Mechanism, tokens: Tokens, columns: int) -> None:
        self.mechanism, self.tokens = mechanism, tokens
        self._attended: Tensor | None = None
        if tokens.values is not None and columns >= tokens.values.shape[-1]:
            self._attended = self._attend(tokens.values)
            self.probe = float(self._attend_probe())

    def peaks(self, projected: Callable[[Tokens], Tensor], signs: Tensor) -> Float[Tensor, " columns"]:
        """The largest pre-activation over the rows, one for each sign vector.

        Few sign vectors are applied to the values before attending, many after: attention costs
        n^2 (width + the lesser of features and sign vectors).
        """
        if self._attended is not None:
            step = max(1, ELEMENTS // max(1, signs.shape[0]))
            parts = [(rows @ signs.mT).amax(0) for rows in torch.split(self._attended, step)]
            return torch.stack(parts).amax(0)
        columns = torch.cat([projected(self.tokens), self.tokens.probe[:, None]], dim=-1)
        peaks = self._attend(columns).amax(0)
        self.probe = float(peaks[-1])
        return peaks[:-1]

    def _attend(self, values: Tensor) -> Float[Tensor, "rows columns"]:
        counts = None if self.tokens.counts is None else self.tokens.counts[None]
        return attend(
            self.mechanism,
            self.tokens.queries[None],
            self.tokens.keys[None],
            values[None],
            counts,
            self.tokens.last,
        )[0]

    def _attend_probe(self) -> Tensor:
        assert self._attended is not None
        return self._attended.sum(-1).amax()


def attend(
    mechanism: Mechanism,
    q: Float[Tensor, "batch queries width"],
    k: Float[Tensor, "batch keys width"],
    v: Float[Tensor, "batch keys features"],
    counts: Float[Tensor, "batch keys"] | None = None,
    last: bool = False,
) -> Float[Tensor, "batch rows features"]:
    """One head, causal if the mechanism is.

    Where places matter, a single query stands at every place, or with `last` each after all tokens.
    """
    if last and not mechanism.permutation_equivariant:
        each = [attend(mechanism, q[:, i : i + 1], k, v, counts)[:, -1:] for i in range(q.shape[1])]
        return torch.cat(each, dim=1)
    if not mechanism.permutation_equivariant and q.shape[1] == 1:
        q = q.expand(-1, k.shape[1], -1)
    counted = None if counts is None else counts[:, None]
    with torch.no_grad():
        return mechanism(
            q[:, None], k[:, None], v[:, None], counted, mechanism.causality is Causality.ALWAYS
        )[:, 0]


@dataclass
class _Tally:
    """Counts of what fired; what is too close to the threshold to call is taken not to.

    An exact tie does not fire, and nearly all that is so close is one. The interval does not rely on
    it: it reaches from `sure` to `maybe`.
    """

    draws: int = 0
    neurons: tuple[int, int] = (0, 0)
    fired: tuple[int, int] = (0, 0)
    only: int = 0
    hits: int = 0
    sure: int = 0
    maybe: int = 0
    close: int = 0

    def add(self, peaks: list[Tensor], m: int, threshold: float, unit: float) -> None:
        """One batch: the peaks of D0 and D1 for the same sign vectors."""
        if not all(peak.isfinite().all() for peak in peaks):
            raise EngineRefusal("scores overflow the number format here, so nothing can be read off them")
        precise = torch.finfo(peaks[0].dtype).bits > 16  # in 16 bits the format's own answer is the question
        slack = precise * SLACK * torch.finfo(peaks[0].dtype).eps * (abs(threshold) + unit)
        over = [(peak.double() - threshold).reshape(-1, m) for peak in peaks]
        surely = [(each > slack).any(-1) for each in over]
        possibly = [(each > -slack).any(-1) for each in over]
        self.draws += len(over[0])
        self.neurons = _plus(self.neurons, [int((each > slack).sum()) for each in over])
        self.only += int(((over[1] > slack) & ~(over[0] > slack)).sum())
        self.fired = _plus(self.fired, [int(each.sum()) for each in surely])
        self.hits += int((~surely[0] & surely[1]).sum())
        self.sure += int((~possibly[0] & surely[1]).sum())
        self.maybe += int((~surely[0] & possibly[1]).sum())
        self.close += int(((surely[0] != possibly[0]) | (surely[1] != possibly[1])).sum())

    def interval(self, confidence: float) -> tuple[float, float]:
        """For P[distinguishes], after the draws so far."""
        low, _ = _interval(self.sure, self.draws, confidence)
        _, high = _interval(self.maybe, self.draws, confidence)
        return low, high


def sample(
    engine: str,
    construction: Construction,
    mechanism: Mechanism,
    tokens: Callable[[Label, int], Tokens],
    positions: int,
    sampling: Sampling,
) -> Outcome:
    """Draw signs in `positions` batches between looks, each with its own spike position, and count."""
    rng = np.random.default_rng(sampling.seed)
    tally, probes = _Tally(), [-np.inf, -np.inf]
    for share in _batches(sampling, tally, lambda _: positions):
        spike = int(rng.integers(min(construction.n, 2**62)))
        columns = share * construction.m
        views = [View(mechanism, tokens(0, spike), columns), View(mechanism, tokens(1, spike), columns)]
        for draws in _shares(share, -(-columns * _width(views[0]) // ELEMENTS)):
            signs, projected = _draw(construction, views[0].tokens, rng, draws * construction.m, sampling)
            peaks = [view.peaks(projected, signs) for view in views]
            tally.add(peaks, construction.m, construction.threshold, construction.unit)
        probes = [max(seen, view.probe / construction.unit) for seen, view in zip(probes, views, strict=True)]
    return _outcome(engine, construction, sampling, tally, probes)


def sample_places(
    engine: str,
    construction: Construction,
    mechanism: Mechanism,
    tokens: Callable[[Label, int], Tokens],
    sampling: Sampling,
) -> Outcome:
    """As `sample`, with a place of its own for the spike in every draw: for mechanisms that see places.

    Several draws go through the mechanism as one batch.
    """
    rng = np.random.default_rng(sampling.seed)
    tally, probes, m = _Tally(), [-np.inf, -np.inf], construction.m
    per_token = construction.dense_width() + m + 1 + (0 if mechanism.streams else construction.n)
    per_draw = construction.n * per_token
    for draws in _batches(sampling, tally, lambda more: -(-more * per_draw // CACHED)):
        places = rng.integers(construction.n, size=draws).tolist()
        batches = [[tokens(label, place) for place in places] for label in (0, 1)]
        drawn = [_draw(construction, each, rng, m, sampling)[1] for each in batches[0]]
        seen = []
        for batch in batches:
            columns = [torch.cat([see(x), x.probe[:, None]], -1) for see, x in zip(drawn, batch, strict=True)]
            seen.append(torch.stack(columns))
        found = [attended.amax(1) for attended in _attend_both(mechanism, batches, seen)]
        probes = [
            max(p, float(f[:, -1].max()) / construction.unit) for p, f in zip(probes, found, strict=True)
        ]
        tally.add([f[:, :-1].flatten() for f in found], m, construction.threshold, construction.unit)
    return _outcome(engine, construction, sampling, tally, probes)


def _attend_both(mechanism: Mechanism, batches: list[list[Tokens]], seen: list[Tensor]) -> tuple[Tensor, ...]:
    """D0 and D1 through the mechanism: as one, where they differ in their values alone."""
    last = batches[0][0].last
    queries, keys = (
        [torch.stack([getattr(x, name) for x in batch]) for batch in batches] for name in ("queries", "keys")
    )
    if torch.equal(*queries) and torch.equal(*keys):
        both = attend(mechanism, queries[0], keys[0], torch.cat(seen, -1), last=last)
        return both.chunk(2, dim=-1)
    return tuple(attend(mechanism, q, k, v, last=last) for q, k, v in zip(queries, keys, seen, strict=True))


def _batches(sampling: Sampling, tally: _Tally, parts: Callable[[int], int]) -> Iterator[int]:
    """How many draws to add to the tally at once: `parts` batches before each look, until one decides."""
    for draws, confidence in sampling.looks():
        more = draws - tally.draws
        yield from _shares(more, parts(more))
        low, high = tally.interval(confidence)
        if sampling.decide and all(low >= bound or high <= bound for bound in sampling.decide):
            return


def _width(view: View) -> int:
    return max(len(view.tokens.keys), len(view.tokens.queries))


def _draw(
    construction: Construction, tokens: Tokens, rng: np.random.Generator, columns: int, sampling: Sampling
) -> tuple[Tensor, Callable[[Tokens], Tensor]]:
    """Sign vectors, and how tokens look through them."""
    dtype = sampling.torch_dtype
    if tokens.values is None and tokens.counts is not None:
        seen = torch.from_numpy(construction.group_signs(rng, columns, tokens.counts.double().numpy())).to(
            dtype
        )
        return seen.mT, lambda _: seen
    bits = torch.from_numpy(rng.integers(0, 2, (columns, construction.signs), dtype=np.int8))
    signs = (2 * bits - 1).to(dtype)
    return signs, lambda tokens: signs.mT if tokens.values is None else tokens.values @ signs.mT


def _outcome(
    engine: str, construction: Construction, sampling: Sampling, tally: _Tally, probes: list[float]
) -> Outcome:
    draws, neurons = tally.draws, tally.draws * construction.m
    looks = sampling.looks()
    confidence = dict(looks)[draws]
    together = f" ({len(looks)} looks, together {100 * sampling.confidence:.6g}%)" if len(looks) > 1 else ""
    close = f", {tally.close} too close to call" if tally.close else ""
    return Outcome(
        engine=engine,
        evidence=f"{draws} draws, {100 * confidence:.6g}% Clopper-Pearson interval{together}, "
        f"{sampling.dtype}{close}",
        p0=tally.neurons[0] / neurons,
        p1=tally.neurons[1] / neurons,
        only=tally.only / neurons,
        fire_d0=tally.fired[0] / draws,
        fire_d1=tally.fired[1] / draws,
        distinguish=tally.hits / draws,
        interval=tally.interval(confidence),
        v0=probes[0],
        v1=probes[1],
        margin=probes[1] - probes[0],
    )


def _interval(hits: int, draws: int, confidence: float) -> tuple[float, float]:
    """The exact binomial interval of Clopper and Pearson, from the quantiles of beta distributions."""
    doubt = (1 - confidence) / 2
    low = float(betaincinv(hits, draws - hits + 1, doubt)) if hits else 0.0
    high = float(betaincinv(hits + 1, draws - hits, 1 - doubt)) if hits < draws else 1.0
    return low, high


def _plus(one: tuple[int, int], other: list[int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


def _shares(total: int, parts: int) -> list[int]:
    """`total` split into at most `parts` nearly equal positive shares.

    >>> _shares(10, 3)
    [4, 3, 3]
    """
    parts = max(1, min(parts, total))
    small, extra = divmod(total, parts)
    return [small + (i < extra) for i in range(parts)]
