"""Drawing the reader's signs, and where places differ the place; counting what fires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import scipy

from separatrix.constructions import Construction, Tokens
from separatrix.engines.outcome import EngineRefusal, Outcome, side_between
from separatrix.engines.sampling import Sampling
from separatrix.mechanisms import Mechanism
from separatrix.outputs.attention import ELEMENTS, TokenBatch, View, attend_both, float_margin, rounding
from separatrix.outputs.tokens import TokensAt, draw_places
from separatrix.tensors import Tensor, one_thread, torch

CACHED = 1 << 20
"""Numbers in a batch of token sets: more than the cache holds are no faster."""


def sample(
    engine: str,
    construction: Construction,
    mechanism: Mechanism,
    tokens: TokensAt,
    sampling: Sampling,
) -> Outcome:
    """Draw signs and count what fires, the special token at one place: for where all places are alike."""
    rng = np.random.default_rng(sampling.seed)
    tally, m = Tally(), construction.m
    (place,) = draw_places(rng, construction.n, 1)
    views = [View(mechanism, tokens(label, place), sampling.draws * m) for label in (0, 1)]
    slack = max(rounding(mechanism, TokenBatch.of([view.tokens]), construction) for view in views)
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
    tokens: TokensAt,
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
    with one_thread() if rows * per_token < CACHED else nullcontext():
        for draws in _batches(sampling, tally, lambda more: -(-more * rows * per_token // CACHED)):
            places = draw_places(rng, construction.n, draws)
            batches = [TokenBatch.of([tokens(label, place) for place in places]) for label in (0, 1)]
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


@dataclass
class Tally:
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

    def add(self, peaks: list[Tensor], m: int, threshold: float, slack: float) -> None:
        """Count a batch: the peaks of D0 and D1 for the same sign vectors; within `slack` they may be off."""
        if not all(peak.isfinite().all() for peak in peaks):
            raise EngineRefusal("scores overflow the number format here, so nothing can be read off them")
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
        """The interval of P[distinguishes] after the draws so far."""
        low, _ = binomial_interval(self.sure, self.draws, confidence)
        _, high = binomial_interval(self.maybe, self.draws, confidence)
        return low, high


def binomial_interval(hits: int, draws: int, confidence: float) -> tuple[float, float]:
    """The exact binomial interval of Clopper and Pearson, from the quantiles of beta distributions."""
    doubt = (1 - confidence) / 2
    low = float(scipy.special.betaincinv(hits, draws - hits + 1, doubt)) if hits else 0.0
    high = float(scipy.special.betaincinv(hits + 1, draws - hits, 1 - doubt)) if hits < draws else 1.0
    return low, high


def _plus(one: tuple[int, int], other: list[int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]
