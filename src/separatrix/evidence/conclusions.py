"""What may be concluded from models trained beside a floor, and what may not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from separatrix.evidence.estimates import Difference, Mean


class BesideFloor(Enum):
    """Where trained models stand beside the best shortcut."""

    ABOVE = "better than the floor"
    AT = "not told from the floor: says nothing about mechanisms"
    BELOW = "below the floor: says nothing about mechanisms"
    FAILED = "every run failed"


def beside_floor(trained: Mean | None, floor: float, sign: int) -> BesideFloor:
    """Whether the interval of a mean over seeds lies beyond a floor; `sign` is -1 where lower is better.

    >>> beside_floor(Mean.of([0.91, 0.92, 0.93]), 0.87, 1).value
    'better than the floor'
    >>> beside_floor(Mean.of([3.5, 3.6]), 3.1, -1).name  # bits a byte, and two seeds: a wide interval
    'AT'
    """
    if trained is None:
        return BesideFloor.FAILED
    ends = sorted(sign * (end - floor) for end in trained.interval or (trained.mean, trained.mean))
    if trained.interval is not None and ends[0] > 0:
        return BesideFloor.ABOVE
    return BesideFloor.BELOW if ends[1] <= 0 else BesideFloor.AT


def conclusions(
    standings: Mapping[str, BesideFloor], paired: Iterable[Difference], sign: int
) -> tuple[str, ...]:
    """In plain words what runs show of mechanisms, which stand so beside a floor; of those below it, nothing.

    Mechanisms are compared in pairs, seed by seed, where both are better than the floor.
    """
    above = [name for name, where in standings.items() if where is BesideFloor.ABOVE]
    if not above:
        return (
            "no mechanism was better than the floor, which says nothing about mechanisms, only that so "
            "little training is not enough",
        )
    said = list[str]()
    if len(above) < len(standings):
        rest = ", ".join(name for name in standings if name not in above)
        said.append(f"nothing can be said of {rest}: not better than the floor")
    pairs = [pair for pair in paired if pair.a in above and pair.b in above]
    said += [_told_apart(pair, sign) for pair in pairs if pair.separated]
    alike = [f"{pair.a} and {pair.b}" for pair in pairs if not pair.separated]
    if alike:
        said.append(f"the seeds do not tell apart {'; '.join(alike)}")
    return tuple(said)


def _told_apart(pair: Difference, sign: int) -> str:
    mean, ends = pair.found.mean, pair.found.interval
    assert ends is not None
    better, worse = (pair.a, pair.b) if sign * mean > 0 else (pair.b, pair.a)
    return f"{better} is better than {worse} by {abs(mean):.4f} ±{ends[1] - mean:.4f}"
