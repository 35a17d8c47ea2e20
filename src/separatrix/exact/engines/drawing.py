"""Drawing the reader's signs, and where places differ the place; counting what fires."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from separatrix.constructions import Construction, Tokens
from separatrix.core.tensors import Bool, Float, Int, Tensor, memory_kept, one_thread, torch
from separatrix.exact.engines.outcome import Outcome, side_between
from separatrix.exact.engines.sampling import Sampling
from separatrix.exact.engines.tally import Tally
from separatrix.exact.outputs.attention import (
    ELEMENTS,
    Reading,
    TokenBatch,
    View,
    float_margin,
    is_linear,
    read_both,
    rounding,
)
from separatrix.exact.outputs.tokens import TokensAt, draw_places
from separatrix.mechanisms import AskedLast, Mechanism

CACHED = 1 << 20
"""Numbers in a batch of token sets: more than the cache holds are no faster."""
FEW, CROWD = 4, 1 << 22
"""Where the cache holds fewer sets than this, so many numbers are in a batch: what a mechanism makes of
places alone, as a bias, it makes once for a batch."""
SMALL = 1 << 24
"""Numbers that one thread takes alone: a second spends more on waiting for its turn than it saves."""


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
    for more in _until_decided(sampling, tally):
        for share in _shares(more, -(-more * m * _width(views[0]) // ELEMENTS)):
            signs, projected = _draw(construction, views[0].tokens, rng, share * m, sampling)
            peaks = [view.peaks(projected, signs) for view in views]
            tally.add(peaks, m, construction.threshold, slack)
            sampling.told(tally.draws, sampling.draws)
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

    Draws at the same place go through the mechanism as one, and several places as one batch. The margin is
    the least at the places drawn.
    """
    rng = np.random.default_rng(sampling.seed)
    tally, m, unit = Tally(), construction.m, construction.unit
    some, shared = tokens(0, 0), is_linear(mechanism)
    rows = len(some.keys)
    alone = some.last and mechanism.asked_last(*some.keys.shape) is not AskedLast.AFTER_OTHERS
    scores = mechanism.holds_scores and not alone
    least = math.inf, 0, 0.0, 0.0

    def numbers(draws: int, scores: bool) -> int:
        """Those that so many draws at one place take in a batch, with or without scores."""
        return rows * (construction.dense_width() + draws * m + 1 + scores * rows)

    def together(draws: int) -> int:
        """How many places with so many draws go through the mechanism at once."""
        each = numbers(draws, scores)
        return CACHED // each if FEW * each <= CACHED else CROWD // each

    turn = numbers(1, not mechanism.streams)  # in which order places and signs are drawn hangs on it
    with memory_kept(), one_thread() if turn < SMALL else nullcontext():
        for more in _until_decided(sampling, tally, costly=True):
            for places, signs in _drawn(rng, construction, _shares(more, -(-more * turn // CACHED))):
                done = tally.draws
                for groups in _batches(_by_place(places, shared), together):
                    at = [places[draws[0]] for draws in groups]
                    columns, there = _side_by_side(signs, groups, sampling.torch_dtype)
                    found = _read_at(at, tokens, mechanism, columns, construction)
                    peaks = [each.peaks.reshape(*there.shape, m)[there].flatten() for each in found]
                    tally.add(peaks, m, construction.threshold, max(each.slack for each in found))
                    sampling.told(tally.draws, sampling.draws)
                    ends = zip(*((each.probes.double() / unit).tolist() for each in found), strict=True)
                    margins = (
                        (v1 - v0, done + x[0], v0, v1) for x, (v0, v1) in zip(groups, ends, strict=True)
                    )
                    least = min(least, *margins)
    return _outcome(engine, construction, sampling, tally, least[2:], "each at a place of its own, ")


def _read_at(
    places: list[int], tokens: TokensAt, mechanism: Mechanism, columns: Tensor, construction: Construction
) -> list[Reading]:
    """What is read off both labels, the special token at these places; the tokens are let go of here."""
    sets = [TokenBatch.of([tokens(label, place) for place in places]) for label in (0, 1)]
    return read_both(mechanism, sets, columns, construction)


def _until_decided(sampling: Sampling, tally: Tally, costly: bool = False) -> Iterator[int]:
    """How many draws to add to the tally before each look, until one decides.

    Where draws are `costly` the last look, for which there are as many as for all before, is left out if its
    draws would have to turn out otherwise than those before to decide.
    """
    looks = sampling.looks()
    for place, (draws, confidence) in enumerate(looks):
        yield draws - tally.draws
        if sampling.decide and _decides(sampling, tally.interval(confidence)):
            return
        if costly and place == len(looks) - 2 and not _may_decide(sampling, tally, *looks[-1]):
            return


def _decides(sampling: Sampling, interval: tuple[float, float]) -> bool:
    """Whether it lies to one side of every level."""
    return None not in (side_between(*interval, level) for level in sampling.decide)


def _may_decide(sampling: Sampling, tally: Tally, draws: int, confidence: float) -> bool:
    """Whether the tally would decide after so many draws, hits going on at a rate that is likely so far."""
    low, high = tally.interval(sampling.confidence)
    more = draws - tally.draws
    hits = range(math.floor(low * more), math.ceil(high * more) + 1)
    ends = (replace(tally, draws=draws, sure=tally.sure + x, maybe=tally.maybe + x) for x in hits)
    return any(_decides(sampling, end.interval(confidence)) for end in ends)


def _drawn(
    rng: np.random.Generator, construction: Construction, shares: list[int]
) -> Iterator[tuple[list[int], Int[Tensor, "draws neurons signs"]]]:
    """Places and signs, drawn in turns of so many draws, as many at once as ELEMENTS signs allow."""
    places: list[int] = []
    signs: list[Tensor] = []
    for share in shares:
        if places and (len(places) + share) * construction.m * construction.signs > ELEMENTS:
            yield places, torch.cat(signs)
            places, signs = [], []
        places += draw_places(rng, construction.n, share)
        signs.append(_signs(rng, (share, construction.m, construction.signs), torch.int8))
    yield places, torch.cat(signs)


def _by_place(places: list[int], shared: bool) -> list[list[int]]:
    """Which draws are at the same place, the most at one place first; each by itself unless `shared`.

    >>> _by_place([5, 3, 5, 8], shared=True)
    [[0, 2], [1], [3]]
    """
    at: dict[tuple[int, int], list[int]] = {}
    for i, place in enumerate(places):
        at.setdefault((place, 0 if shared else i), []).append(i)
    return sorted(at.values(), key=len, reverse=True)


def _batches(groups: list[list[int]], together: Callable[[int], int]) -> Iterator[list[list[int]]]:
    """Groups, the largest first, as many at once as `together` says of the size of the largest."""
    start = 0
    while start < len(groups):
        end = start + max(1, together(len(groups[start])))
        yield groups[start:end]
        start = end


def _side_by_side(
    signs: Int[Tensor, "draws neurons signs"], groups: list[list[int]], dtype: torch.dtype
) -> tuple[Float[Tensor, "groups columns signs"], Bool[Tensor, "groups most"]]:
    """The sign vectors of each group of draws, filled up with zeros, and where there are any."""
    most = len(groups[0])
    there = torch.tensor([[i < len(group) for i in range(most)] for group in groups])
    columns = torch.zeros(len(groups), most, *signs.shape[1:], dtype=dtype)
    columns[there] = signs[[i for group in groups for i in group]].to(dtype)
    return columns.flatten(1, 2), there


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
    interval = f"{100 * sampling.confidence:.6g}% Clopper-Pearson interval"
    if len(looks) > 1:
        interval += f", adjusted for {len(looks)} interim looks"
    close = f", {tally.close} too close to call" if tally.close else ""
    return Outcome(
        engine=engine,
        evidence=f"{draws} draws, {where}{interval}, {sampling.dtype}{close}",
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
