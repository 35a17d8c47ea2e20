"""Conclusions about mechanisms from models trained beside a floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from separatrix.analysis.evidence.estimates import Difference, SeedSummary, describe_resolution


class BesideFloor(Enum):
    """Where trained models stand relative to the best shortcut."""

    ABOVE = "better than the floor"
    AT = "not shown to be better than the floor: says nothing about mechanisms"
    BELOW = "below the floor: says nothing about mechanisms"
    UNABLE = "proved to be unable to reach the floor, which takes another class of models"
    FAILED = "every run failed"


def beside_floor(trained: SeedSummary | None, floor: float, sign: int) -> BesideFloor:
    """Compare the scores of all seeds with a floor; `sign` is -1 where lower is better.

    Models are better than the floor if the 95 % interval of the median over seeds lies beyond it, which takes
    six seeds or more.

    >>> beside_floor(SeedSummary.of([0.91, 0.92, 0.93, 0.92, 0.91, 0.9]), 0.87, 1).value
    'better than the floor'
    >>> beside_floor(SeedSummary.of([0.91, 0.92]), 0.87, 1).name
    'AT'
    """
    if trained is None:
        return BesideFloor.FAILED
    if all(sign * (score - floor) <= 0 for score in trained.interval or trained.scores):
        return BesideFloor.BELOW
    if trained.interval is not None and all(sign * (end - floor) > 0 for end in trained.interval):
        return BesideFloor.ABOVE
    return BesideFloor.AT


def conclusions(
    standings: Mapping[str, BesideFloor], paired: Sequence[Difference], sign: int
) -> tuple[str, ...]:
    """Sentences on what the runs show of the mechanisms.

    Mechanisms are compared in pairs, seed by seed, where both are better than the floor.
    """
    above = [name for name, where in standings.items() if where is BesideFloor.ABOVE]
    lines = list[str]()
    if unable := [name for name, where in standings.items() if where is BesideFloor.UNABLE]:
        lines.append(f"{', '.join(unable)}: {BesideFloor.UNABLE.value}")
    if not above:
        lines.append(
            "no mechanism was shown to be better than the floor, which says nothing about mechanisms, only "
            "that this training is not enough"
        )
        return tuple(lines)
    if rest := ", ".join(name for name in standings if name not in (*above, *unable)):
        lines.append(f"nothing can be concluded about {rest}: not shown to be better than the floor")
    pairs = [pair for pair in paired if pair.a in above and pair.b in above]
    lines += [_describe_difference(pair, sign) for pair in pairs if pair.is_significant]
    unclear = [f"{pair.a} and {pair.b}" for pair in pairs if not pair.is_significant]
    if unclear:
        lines.append(f"no significant difference between {'; '.join(unclear)}")
        resolution = describe_resolution(paired)
        lines += [] if resolution is None else [resolution]
    return tuple(lines)


def _describe_difference(pair: Difference, sign: int) -> str:
    mean = pair.gaps.mean
    better, worse = (pair.a, pair.b) if sign * mean > 0 else (pair.b, pair.a)
    return f"{better} is better than {worse} by {abs(mean):.4f} (adjusted p = {pair.p_adjusted:.2g})"
