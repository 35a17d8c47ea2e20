"""Theory 6.10, associative recall: fixed states and how many pairs they hold."""

from __future__ import annotations

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point
from separatrix.claims.rank import rank
from separatrix.constructions.recall import Recall
from separatrix.core.tensors import torch
from separatrix.exact.engines import Sampling
from separatrix.exact.outputs.attention import attend
from separatrix.mechanisms import mechanism_named

LIMITED = ("linear", "identity-features:normalised=no", "causal-linear", "delta")
STATES = ("causal-linear", "delta", "gated-delta")
WIDTHS = (8, 16, 32)
DRAWS = Sampling(draws=200, confidence=0.999)
ROUNDING = 1e-12


@claim("recall-state", "6.10", "ours")
def state_size() -> Finding:
    """Associative recall with fixed weights: a state of width w (linear attention, the delta rule) recalls
    exactly from w orthogonal pairs; from w + 1 pairs of keys written with two digits, which share coordinates
    with the asked one, its P is below 1/2 (other keys may leave it alone). Softmax recalls from 2 w.

    Up to `width` pairs the other values are not heard at all; with one more they are.
    """
    points = Points()
    for width in WIDTHS:
        points += [holds_point(each, width) for each in LIMITED]
        points += [fails_point(each, width) for each in LIMITED]
        points.append(softmax_point(width))
    return points.conclude(
        f"widths {', '.join(map(str, WIDTHS))}: with n = width pairs {', '.join(LIMITED)} hear "
        f"{points.largest('heard'):.0f} of the other values; with width + 1, P is "
        f"{points.largest('past'):.2f} or less, and softmax's with 2 width is "
        f"{points.smallest('softmax'):.4f} (certified)",
        f"P at most {points.largest('past_most'):.2f} past the state, {points.smallest('within'):.2f} or "
        "more within it (ends of 99.9% intervals)",
    )


def holds_point(mechanism: str, width: int) -> Point:
    """Holds if n = width orthogonal pairs are recalled: nothing is heard where the asked value is 0."""
    found = judged(example(Recall, n=width, width=width), mechanism, sampling=DRAWS).outcome
    heard = abs(found.v0) / found.v1
    low, high = found.interval
    holds = heard < ROUNDING and 0.9 < low <= found.distinguish <= high
    parameters = {"mechanism": mechanism, "n": width, "width": width}
    return point(parameters, holds, heard=heard, within=found.interval[0])


def fails_point(mechanism: str, width: int) -> Point:
    """Holds if one pair more is one too many."""
    found = judged(example(Recall, n=width + 1, width=width), mechanism, sampling=DRAWS).outcome
    least, most = found.interval
    parameters = {"mechanism": mechanism, "n": width + 1, "width": width}
    holds = least <= found.distinguish <= most < 0.5
    return point(parameters, holds, past=found.distinguish, past_most=most)


def softmax_point(width: int) -> Point:
    """Holds if softmax recalls from twice as many pairs as there are coordinates."""
    found = judged(example(Recall, n=2 * width, width=width), "softmax", "certified")
    return point(
        {"mechanism": "softmax", "n": 2 * width, "width": width},
        found.word == "distinguishes",
        softmax=found.outcome.distinguish,
    )


def read_off(mechanism: str, n: int, width: int) -> torch.Tensor:
    """What each of n random queries, asked after n random pairs, gets of each value: one row a query."""
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, n, width, generator=draw, dtype=torch.float64) for _ in range(2))
    return attend(mechanism_named(mechanism), q, k, torch.eye(n, dtype=q.dtype)[None], last=True)[0]


@claim("state-rank", "6.10", "ours")
def state_rank() -> Finding:
    """What a linear state of width w answers depends on n values through w numbers at most, so past w pairs
    some values are lost to every reader; softmax loses none.

    The matrix from n values to the answers to n questions has rank `width`, and n for softmax.
    """
    points = Points()
    for width in (4, 8):
        n = 3 * width
        for each in STATES:
            found = rank(read_off(each, n, width))
            points.add({"mechanism": each, "n": n, "width": width}, found == width, lost=n - found)
        full = rank(read_off("softmax", n, width))
        points.add({"mechanism": "softmax", "n": n, "width": width}, full == n, kept=full)
    return points.conclude(
        f"of n = 12 and 24 values, {', '.join(STATES)} of width n/3 lose {points.smallest('lost'):.0f} and "
        f"{points.largest('lost'):.0f} dimensions whatever is asked; softmax keeps all "
        f"{points.smallest('kept'):.0f} and {points.largest('kept'):.0f}",
        f"{points.smallest('lost'):.0f} dimensions or more that no reader gets back",
    )
