"""Sampling the reader's signs, and the position of the special token if it matters."""

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
from separatrix.mechanisms import LastQueryMode, Mechanism

CACHED = 1 << 20
"""Numbers in a batch of token sets; batches beyond the cache size are no faster."""
FEW, CROWD = 4, 1 << 22
"""If the cache holds fewer than FEW sets, batches have CROWD numbers: a mechanism computes what depends on
positions only, such as a bias, once per batch."""
SMALL = 1 << 24
"""Below this many numbers one thread is faster than two, which wait for each other."""


def sample(
    engine: str, construction: Construction, mechanism: Mechanism, tokens: TokensAt, sampling: Sampling
) -> Outcome:
    """Sample signs with the special token at one position, for cases in which positions do not matter."""
    rng = np.random.default_rng(sampling.seed)
    tally, m = Tally(), construction.m
    (place,) = draw_places(rng, construction.n, 1)
    views = [View(mechanism, tokens(label, place), sampling.draws * m) for label in (0, 1)]
    slack = max(rounding(mechanism, TokenBatch.of([view.tokens]), construction) for view in views)
    for more in _until_decided(sampling, tally):
        for share in _shares(more, -(-more * m * _width(views[0]) // ELEMENTS)):
            signs, project = _draw(construction, views[0].tokens, rng, share * m, sampling)
            peaks = [view.peaks(project, signs) for view in views]
            tally.add(peaks, m, construction.threshold, slack)
            sampling.told(tally.draws, sampling.draws)
    v0, v1 = (view.probe / construction.unit for view in views)
    return _outcome(engine, construction, sampling, tally, (v0, v1))


def sample_places(
    engine: str, construction: Construction, mechanism: Mechanism, tokens: TokensAt, sampling: Sampling
) -> Outcome:
    """Sample signs and the position of the special token, for cases in which positions matter.

    Draws at one position share an attention pass, and several positions form a batch. The margin is the
    smallest over the sampled positions.
    """
    rng = np.random.default_rng(sampling.seed)
    tally, m, unit = Tally(), construction.m, construction.unit
    example, share_positions = tokens(0, 0), is_linear(mechanism)
    rows = len(example.keys)
    alone = example.last and mechanism.last_query_mode(*example.keys.shape) is not LastQueryMode.AFTER_OTHERS
    scores = mechanism.holds_scores and not alone
    least = math.inf, 0, 0.0, 0.0

    def numbers(draws: int, scores: bool) -> int:
        """Return how many numbers the draws at one position need, with or without attention scores."""
        return rows * (construction.dense_width() + draws * m + 1 + scores * rows)

    def together(draws: int) -> int:
        """Return how many positions with this many draws form a batch."""
        per_position = numbers(draws, scores)
        return CACHED // per_position if FEW * per_position <= CACHED else CROWD // per_position

    turn = numbers(1, not mechanism.streams)  # the order in which positions and signs are drawn depends on it
    with memory_kept(), one_thread() if turn < SMALL else nullcontext():
        for more in _until_decided(sampling, tally, costly=True):
            for places, signs in _draw_batches(rng, construction, _shares(more, -(-more * turn // CACHED))):
                draws_before = tally.draws
                for groups in _batches(_group_by_position(places, share_positions), together):
                    at = [places[draws[0]] for draws in groups]
                    columns, is_used = _side_by_side(signs, groups, sampling.torch_dtype)
                    readings = _read_at(at, tokens, mechanism, columns, construction)
                    peaks = [
                        per_position.peaks.reshape(*is_used.shape, m)[is_used].flatten() for per_position in readings
                    ]
                    tally.add(peaks, m, construction.threshold, max(per_position.slack for per_position in readings))
                    sampling.told(tally.draws, sampling.draws)
                    ends = zip(
                        *((per_position.probes.double() / unit).tolist() for per_position in readings), strict=True
                    )
                    margins = ((v1 - v0, draws_before + x[0], v0, v1) for x, (v0, v1) in zip(groups, ends, strict=True))
                    least = min(least, *margins)
    return _outcome(engine, construction, sampling, tally, least[2:], "each at its own position, ")


def _read_at(
    places: list[int], tokens: TokensAt, mechanism: Mechanism, columns: Tensor, construction: Construction
) -> list[Reading]:
    """Read both labels with the special token at these positions; the tokens are freed on return."""
    sets = [TokenBatch.of([tokens(label, place) for place in places]) for label in (0, 1)]
    return read_both(mechanism, sets, columns, construction)


def _until_decided(sampling: Sampling, tally: Tally, costly: bool = False) -> Iterator[int]:
    """Yield how many draws to add before each interim look, until one decides.

    If draws are `costly`, the last look, which doubles their number, is skipped unless it can decide with
    hits at a rate that is plausible so far.
    """
    looks = sampling.looks()
    for place, (draws, confidence) in enumerate(looks):
        yield draws - tally.draws
        if sampling.decide and _decides(sampling, tally.interval(confidence)):
            return
        if costly and place == len(looks) - 2 and not _may_decide(sampling, tally, *looks[-1]):
            return


def _decides(sampling: Sampling, interval: tuple[float, float]) -> bool:
    """Whether an interval lies on one side of every level."""
    return None not in (side_between(*interval, level) for level in sampling.decide)


def _may_decide(sampling: Sampling, tally: Tally, draws: int, confidence: float) -> bool:
    """Whether the tally may decide after `draws` draws, with hits at a rate that is plausible so far."""
    low, high = tally.interval(sampling.confidence)
    more = draws - tally.draws
    hits = range(math.floor(low * more), math.ceil(high * more) + 1)
    ends = (replace(tally, draws=draws, sure=tally.sure + x, maybe=tally.maybe + x) for x in hits)
    return any(_decides(sampling, end.interval(confidence)) for end in ends)


def _draw_batches(
    rng: np.random.Generator, construction: Construction, shares: list[int]
) -> Iterator[tuple[list[int], Int[Tensor, "draws neurons signs"]]]:
    """Draw positions and signs in turns of the given sizes; yield batches of at most ELEMENTS signs."""
    places: list[int] = []
    signs: list[Tensor] = []
    for share in shares:
        if places and (len(places) + share) * construction.m * construction.signs > ELEMENTS:
            yield places, torch.cat(signs)
            places, signs = [], []
        places += draw_places(rng, construction.n, share)
        signs.append(_signs(rng, (share, construction.m, construction.signs), torch.int8))
    yield places, torch.cat(signs)


def _group_by_position(places: list[int], share_positions: bool) -> list[list[int]]:
    """Group the draws by position, the largest group first; separately unless `share_positions`.

    >>> _group_by_position([5, 3, 5, 8], share_positions=True)
    [[0, 2], [1], [3]]
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for i, place in enumerate(places):
        groups.setdefault((place, 0 if share_positions else i), []).append(i)
    return sorted(groups.values(), key=len, reverse=True)


def _batches(groups: list[list[int]], together: Callable[[int], int]) -> Iterator[list[list[int]]]:
    """Yield batches of groups, the largest first; `together` gives the batch size for a group size."""
    start = 0
    while start < len(groups):
        end = start + max(1, together(len(groups[start])))
        yield groups[start:end]
        start = end


def _side_by_side(
    signs: Int[Tensor, "draws neurons signs"], groups: list[list[int]], dtype: torch.dtype
) -> tuple[Float[Tensor, "groups columns signs"], Bool[Tensor, "groups most"]]:
    """Stack the sign vectors of each group, padded with zeros, and return which entries are used."""
    widest = len(groups[0])
    is_used = torch.tensor([[i < len(group) for i in range(widest)] for group in groups])
    # Padded sign vectors of zeros read 0; `is_used` keeps them out of the tally.
    columns = torch.zeros(len(groups), widest, *signs.shape[1:], dtype=dtype)
    columns[is_used] = signs[[i for group in groups for i in group]].to(dtype)
    return columns.flatten(1, 2), is_used


def _width(view: View) -> int:
    return max(len(view.tokens.keys), len(view.tokens.queries))


def _draw(
    construction: Construction, tokens: Tokens, rng: np.random.Generator, columns: int, sampling: Sampling
) -> tuple[Tensor, Callable[[Tokens], Tensor]]:
    """Draw sign vectors, and return them with a function that projects token values on them."""
    dtype = sampling.torch_dtype
    if tokens.values is None and tokens.counts is not None:
        group_means = torch.from_numpy(construction.group_signs(rng, columns, tokens.counts.double().numpy())).to(dtype)
        return group_means.mT, lambda _: group_means
    signs = _signs(rng, (columns, construction.signs), dtype)
    return signs, lambda tokens: signs.mT if tokens.values is None else tokens.values @ signs.mT


def _signs(rng: np.random.Generator, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Draw independent uniform signs."""
    return (2 * torch.from_numpy(rng.integers(0, 2, shape, dtype=np.int8)) - 1).to(dtype)


def _outcome(
    engine: str,
    construction: Construction,
    sampling: Sampling,
    tally: Tally,
    probes: tuple[float, float],
    remark: str = "",
) -> Outcome:
    draws, neurons = tally.draws, tally.draws * construction.m
    looks = sampling.looks()
    confidence = dict(looks)[draws]
    interval = f"{100 * sampling.confidence:.6g}% Clopper-Pearson interval"
    if len(looks) > 1:
        interval += f", adjusted for {len(looks)} interim looks"
    close_calls = f", {tally.close} too close to call" if tally.close else ""
    return Outcome(
        engine=engine,
        evidence=f"{draws} draws, {remark}{interval}, {sampling.dtype}{close_calls}",
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
    """Split `total` into at most `parts` nearly equal positive shares.

    >>> _shares(10, 3)
    [4, 3, 3]
    """
    parts = max(1, min(parts, total))
    small, extra = divmod(total, parts)
    return [small + (i < extra) for i in range(parts)]
