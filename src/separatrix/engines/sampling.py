"""Drawing the reader's signs, and where places differ the place: what dense and grouped share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from separatrix.constructions import Construction, Label, Tokens
from separatrix.engines._base import Outcome
from separatrix.engines.sides import side_between
from separatrix.engines.tally import Tally
from separatrix.mechanisms import Mechanism
from separatrix.outputs.attention import ELEMENTS, Batch, View, attend_both, float_margin, rounding
from separatrix.outputs.places import draw_places
from separatrix.parameters import UsageError
from separatrix.tensors import Tensor, torch

CACHED = 1 << 20
"""Numbers in a batch of token sets: more than the cache holds are no faster."""
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
    """How many draws of the reader's signs, from which seed, in which number format: `Sampling(draws=99)`."""

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

    def chosen(self) -> dict[str, object]:
        """What was asked for by name, and differs from what is usual."""
        usual = Sampling()
        names = ("draws", "seed", "confidence", "dtype")
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(usual, name)}

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


def sample(
    engine: str,
    construction: Construction,
    mechanism: Mechanism,
    tokens: Callable[[Label, int], Tokens],
    sampling: Sampling,
) -> Outcome:
    """Draw signs and count what fires, the special token at one place: for where all places are alike."""
    rng = np.random.default_rng(sampling.seed)
    tally, m = Tally(), construction.m
    (place,) = draw_places(rng, construction.n, 1)
    views = [View(mechanism, tokens(label, place), sampling.draws * m) for label in (0, 1)]
    slack = max(rounding(mechanism, Batch.of([view.tokens]), construction) for view in views)
    for share in _batches(sampling, tally, lambda more: -(-more * m * _width(views[0]) // ELEMENTS)):
        signs, projected = _draw(construction, views[0].tokens, rng, share * m, sampling)
        peaks = [view.peaks(projected, signs) for view in views]
        tally.add(peaks, m, construction.threshold, slack)
    v0, v1 = (view.probe / construction.unit for view in views)
    return _outcome(engine, construction, sampling, tally, (v0, v1))


def sample_places(
    engine: str,
    construction: Construction,
    mechanism: Mechanism,
    tokens: Callable[[Label, int], Tokens],
    sampling: Sampling,
) -> Outcome:
    """As `sample`, with a place of its own for the special token in every draw: for where places differ.

    Several draws go through the mechanism as one batch. The margin is the least at the places drawn.
    """
    rng = np.random.default_rng(sampling.seed)
    tally, m, unit = Tally(), construction.m, construction.unit
    probes: list[tuple[float, float]] = []
    rows = len(tokens(0, 0).keys)
    per_token = construction.dense_width() + m + 1 + (0 if mechanism.streams else rows)
    for draws in _batches(sampling, tally, lambda more: -(-more * rows * per_token // CACHED)):
        places = draw_places(rng, construction.n, draws)
        batches = [Batch.of([tokens(label, place) for place in places]) for label in (0, 1)]
        signs = _signs(rng, (draws, m, construction.signs), sampling.torch_dtype)
        found = [attended.amax(1) for attended in attend_both(mechanism, batches, signs)]
        slack = max(rounding(mechanism, batch, construction) for batch in batches)
        tally.add([each[:, :-1].flatten() for each in found], m, construction.threshold, slack)
        v0, v1 = ((each[:, -1].double() / unit).tolist() for each in found)
        probes = [min((*probes, *zip(v0, v1, strict=True)), key=lambda pair: pair[1] - pair[0])]
    return _outcome(engine, construction, sampling, tally, probes[0], "each at a place of its own, ")


def _batches(sampling: Sampling, tally: Tally, parts: Callable[[int], int]) -> Iterator[int]:
    """How many draws to add to the tally at once: `parts` batches before each look, until one decides."""
    for draws, confidence in sampling.looks():
        more = draws - tally.draws
        yield from _shares(more, parts(more))
        low, high = tally.interval(confidence)
        if sampling.decide and None not in (side_between(low, high, level) for level in sampling.decide):
            return


def _width(view: View) -> int:
    return max(len(view.tokens.keys), len(view.tokens.queries))


def _draw(
    construction: Construction, tokens: Tokens, rng: np.random.Generator, columns: int, sampling: Sampling
) -> tuple[Tensor, Callable[[Tokens], Tensor]]:
    """Drawn sign vectors, and a function that looks at tokens through them."""
    dtype = sampling.torch_dtype
    if tokens.values is None and tokens.counts is not None:
        seen = torch.from_numpy(construction.group_signs(rng, columns, tokens.counts.double().numpy())).to(
            dtype
        )
        return seen.mT, lambda _: seen
    signs = _signs(rng, (columns, construction.signs), dtype)
    return signs, lambda tokens: signs.mT if tokens.values is None else tokens.values @ signs.mT


def _signs(rng: np.random.Generator, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Independent signs, + or - with equal chances."""
    return (2 * torch.from_numpy(rng.integers(0, 2, shape, dtype=np.int8)) - 1).to(dtype)


def _outcome(
    engine: str,
    construction: Construction,
    sampling: Sampling,
    tally: Tally,
    probes: tuple[float, float],
    where: str = "",
) -> Outcome:
    draws, neurons = tally.draws, tally.draws * construction.m
    looks = sampling.looks()
    confidence = dict(looks)[draws]
    together = f" ({len(looks)} looks, together {100 * sampling.confidence:.6g}%)" if len(looks) > 1 else ""
    close = f", {tally.close} too close to call" if tally.close else ""
    return Outcome(
        engine=engine,
        evidence=f"{draws} draws, {where}{100 * confidence:.6g}% Clopper-Pearson interval{together}, "
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
        margin=float_margin(*probes, max(map(abs, probes))),
    )


def _shares(total: int, parts: int) -> list[int]:
    """`total` split into at most `parts` nearly equal positive shares.

    >>> _shares(10, 3)
    [4, 3, 3]
    """
    parts = max(1, min(parts, total))
    small, extra = divmod(total, parts)
    return [small + (i < extra) for i in range(parts)]
