"""Theory 6.7 to 6.11, retrieval: sparse means, one location, regression, recall, and a majority."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from separatrix.claims._base import LABELS, Finding, Point, Points, claim
from separatrix.claims._tools import SEPARATED, example, judge, judge_pair, relative_error
from separatrix.claims.blind_spots import rank
from separatrix.claims.separations import UNNORMALISED
from separatrix.constructions.averaging import Averaging
from separatrix.constructions.location import Location
from separatrix.constructions.majority import Majority
from separatrix.constructions.recall import Recall
from separatrix.constructions.regression import Regression
from separatrix.core.numbers.logforms import rational
from separatrix.core.tensors import torch
from separatrix.exact.engines import Outcome, Sampling, dense
from separatrix.exact.outputs.attention import attend
from separatrix.exact.outputs.kernels import kernel_rows
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.mechanisms import Linear, Mechanism, Softmax, mechanism_named

ONE = (Fraction(1),)


@claim("sparse-averaging", "6.7", "rec")
def sparse_averaging() -> Finding:
    """With logits that single out q of n tokens, softmax gives the mean of their values up to n^{1-gap}/q and
    linear does not (arXiv 2306.02896; the width such logits need, of order q log n, is that paper's subject
    and not checked here).

    Inside: gap 2. Outside: q n^gap below n, where the many other tokens win.
    """
    inside = Points(averaging_point(q, n, 2) for q, n in product((1, 8, 1000), (10**4, 10**9, 10**18)))
    outside = Points(averaging_point(q, 10**9, Fraction(1, 2)) for q in (1, 8))
    return inside.conclude_where(
        outside,
        "q n^gap outgrows n: with a smaller gap softmax, too, averages over everything",
        f"softmax gives the asked mean to {inside.softmax_error.max:.0e} (exact; n^(1-gap)/q allowed) and "
        "distinguishes; linear's answers are gap q/(n + gap q) apart, and it is blind (certified); q = 1, "
        "8, 1000, n = 1e4 to 1e18",
        f"softmax uses {inside.of_bound.max:.4f} of its bound; linear's answers are "
        f"{inside.linear_margin.max:.2g} apart or less",
    )


def averaging_point(q: int, n: int, gap: int | Fraction) -> Point:
    """Check that softmax is within its bound and distinguishes, and that linear has its closed form."""
    construction = example(Averaging, q=q, n=n, gap=gap)
    softmax, linear = (proved_outputs(construction, unit) for unit in (Softmax(), Linear()))
    error = max(1 - softmax.reading(1, ONE)[0], softmax.reading(0, ONE)[1])
    limit = Fraction(Fraction(n) ** (1 - gap)) / q
    margin, _ = linear.gap(ONE)
    words, _ = judge_pair(construction)
    holds = error <= limit and margin == gap * q / (n + gap * Fraction(q)) and words == SEPARATED
    results = {"of_bound": float(error / limit), "linear_margin": float(margin), "words": ", ".join(words)}
    return Point({"q": q, "n": n, "gap": gap}, holds, softmax_error=float(error), **results)


LOCATION_SIZES = tuple(10**e for e in (3, 6, 9, 12))
LOCATION_GAP = 2


@claim("single-location", "6.8", "rec")
def single_location() -> Finding:
    """One marked token carries the signal, all carry noise (arXiv 2509.21936): softmax's error tends to the
    Bayes risk, which is 0 here, linear's to that of no answer: it averages the signal away with the noise.

    The squared error of the signal, derived from the margin between a1 = 1 and a0 = 0. At n = 1000 all tokens
    are run through both units as well.
    """
    points = Points(location_point(n) for n in LOCATION_SIZES)
    points.append(location_dense_point(LOCATION_SIZES[0]))
    return points.conclude(
        "softmax distinguishes and linear is blind at n = 1e3 to 1e12 (certified); squared error: softmax "
        f"{points.softmax_risk.max:.0e}, at last {points.softmax_risk.min:.0e} (Bayes: 0), linear "
        f"{points.linear_risk.min:.4f} or more (no answer at all: 1)",
        f"softmax at most n^(2-2gap), {points.of_bound.max:.4f} of it used; linear within "
        f"{1 - points.linear_risk.min:.1e} of knowing nothing",
    )


def risk(construction: Location, mechanism: Mechanism) -> tuple[Fraction, Fraction]:
    """Return two numbers between which (1 - margin)² lies."""
    outputs = proved_outputs(construction, mechanism)
    low, high = outputs.gap(outputs.probe_weights)
    return (1 - high) ** 2, (1 - low) ** 2


def location_point(n: int) -> Point:
    """Check that softmax's risk is at most n^{2-2gap} and linear's ((n-1)/(n+gap))², and the two words."""
    construction = example(Location, n=n, gap=LOCATION_GAP)
    words, _ = judge_pair(construction)
    (_, softmax), (linear, _) = risk(construction, Softmax()), risk(construction, Linear())
    limit = Fraction(1, n ** (2 * LOCATION_GAP - 2))
    is_closed = linear == Fraction(n - 1, n + LOCATION_GAP) ** 2
    holds = softmax <= limit and is_closed and words == SEPARATED
    results = {"of_bound": float(softmax / limit), "linear_risk": float(linear)}
    return Point({"n": n, "gap": LOCATION_GAP}, holds, softmax_risk=float(softmax), **results)


def location_dense_point(n: int) -> Point:
    """Check the outputs on all n tokens, of both units and both labels, against certified numbers."""
    construction = example(Location, n=n, gap=LOCATION_GAP)
    _, outcomes = judge_pair(construction)
    expected = [v for outcome in outcomes for v in (outcome.v0, outcome.v1)]
    cases = product((Softmax(), Linear()), LABELS)
    outputs = [dense.probe(construction, *case, torch.float64) / construction.unit for case in cases]
    error = relative_error(outputs, expected)
    return Point({"n": n, "gap": LOCATION_GAP}, error < 1e-11, dense_error=error)


WEIGHTED = ("softmax", "logn-softmax", "topk", "hardmax", "sparsemax", "relu-features", "elu")
"""Mechanisms with weights that are not negative, for all tokens."""
AVERAGES = ("linear", "power:beta=4", *WEIGHTED)
"""Mechanisms with weights that are not negative on the construction's tokens."""
MAX_ANSWER_ERROR = 1e-12


@claim("gradient-step", "6.9", "rec")
def gradient_step() -> Finding:
    """In-context linear regression (arXiv 2212.07677): unnormalised linear attention is one step of gradient
    descent from 0, and on orthogonal examples answers <w,x> exactly: linear is enough.

    Random designs against a literal gradient step, and the construction's design against <w, x>.
    """
    points = Points(random_design_point(seed) for seed in range(4))
    points += [answer_point(UNNORMALISED, width, n) for width, n in ((1, 8), (4, 1000), (16, 10**6))]
    points.append(answer_point("causal-linear", 4, 40))
    return points.conclude(
        f"the output is that of one gradient step on random designs to {points.error.max:.0e}, and <w,x> = "
        f"width a on the construction's to {points.off.max:.0e}; it distinguishes at n = 8 to 1e6",
        f"error {points.values('error', 'off').max:.0e}, allowed {MAX_ANSWER_ERROR:.0e}",
    )


def random_design_point(seed: int) -> Point:
    """Check that attention over (x_i, y_i) is a gradient step from 0 on the mean of (y_i - <w,x_i>)²/2."""
    rng = np.random.default_rng(seed)
    n, width, rate = 50, 6, 0.3
    x, query, w = rng.normal(size=(n, width)), rng.normal(size=width), rng.normal(size=width)
    y = x @ w + rng.normal(size=n)
    # The gradient at w = 0, example by example: the prediction <0, x_i> is the 0.0 below.
    step = np.zeros(width)
    for i in range(n):
        step += rate / n * (y[i] - 0.0) * x[i]
    q, k, v = (torch.from_numpy(array)[None, None] for array in (query[None], rate / n * x, y[:, None]))
    error = abs(float(mechanism_named(UNNORMALISED)(q, k, v)) / float(step @ query) - 1)
    return Point({"design": "random", "n": n, "width": width, "seed": seed}, error < MAX_ANSWER_ERROR, error=error)


def answer_point(mechanism: str, width: int, n: int) -> Point:
    """Check that both labels are answered with width a, and told apart at a threshold between."""
    construction = example(Regression, width=width, n=n, tau=f"{width}/2")
    answer = judge(construction, mechanism)
    a0, a1 = float(width * construction.a0), float(width * construction.a1)
    off = max(abs(answer.outcome.v0 / a0 - 1), abs(answer.outcome.v1 / a1 - 1))
    holds = off < MAX_ANSWER_ERROR and answer.outcome.interval[0] > 0.98
    return Point({"mechanism": mechanism, "width": width, "n": n}, holds, off=off, word=answer.word)


@claim("averages-stay-in-the-hull", "6.9", "ours")
def hull() -> Finding:
    """Attention whose weights are not negative and add up to 1 answers within the hull of the values, so with
    tau above every value it never fires: linear wins.

    Values all equal a, so averages answer a; on random values they stay between the extremes.
    """
    points, construction = Points(), example(Regression)
    for name in AVERAGES:
        answer = judge(construction, name)
        off = max(abs(answer.outcome.v0 - 0.1), abs(answer.outcome.v1 - 1.0))
        holds = off < MAX_ANSWER_ERROR and answer.word == "blind"
        points.add({"mechanism": name, "n": construction.n}, holds, off=off)
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 40, 6, generator=draw, dtype=torch.float64) for _ in range(3))
    for name in WEIGHTED:
        out = mechanism_named(name)(q, k, v)
        room = float(torch.minimum(v.amax(-2) - out.amax(-2), out.amin(-2) - v.amin(-2)).min())
        points.add({"mechanism": name, "tokens": "random"}, room >= -MAX_ANSWER_ERROR, room=room)
    return points.conclude(
        f"{', '.join(AVERAGES)} answer a and not width a (to {points.off.max:.0e}), so they are blind; on "
        "random tokens the outputs stay within the values",
        f"answers off a by {points.off.max:.0e} and outside the hull by {max(0.0, -points.room.min):.0e}, "
        f"allowed {MAX_ANSWER_ERROR:.0e}",
    )


NOISE_GROUPS = 4
"""Kinds of noise; fewer than usual, so that there are few sign vectors to try."""
NOISE = Fraction(2, 5)


@claim("majority", "6.11", "ours")
def majority() -> Finding:
    """n-1 noisy tokens say the same and one of a large logit says nothing: linear averages and hears
    (n-1)/(n+gap) of it, softmax listens to the one and hears (n-1)/(n-1+n^gap). Linear wins.

    Inside: a distractor of gap 2. Outside: one too quiet to draw softmax away.
    """
    inside = Points(majority_point(n, Fraction(2)) for n in (10**3, 10**6, 10**12))
    outside = Points(majority_point(10**6, gap) for gap in (Fraction(0), Fraction(1, 2)))
    return inside.conclude_where(
        outside,
        "the distractor's gap is above 1; below, softmax averages too",
        f"certified: linear distinguishes (P = {inside.linear.min:.5f} or more) and softmax is blind (P = "
        f"{inside.softmax.max:.0f}), n = 1e3 to 1e12; with a gap of 0 or 1/2 both distinguish",
        f"linear hears {inside.linear_heard.min:.4f} of the majority or more, softmax "
        f"{inside.softmax_heard.max:.1e} or less; needed 1/2 and noise",
    )


def majority_point(n: int, gap: Fraction) -> Point:
    """Check that linear distinguishes and softmax is blind, with the shares that the closed forms give.

    With all signs + a unit that hears a share h of the majority has v0 = noise h and v1 = (1 + noise) h.
    """
    construction = example(Majority, n=n, gap=gap, groups=NOISE_GROUPS)
    words, (linear, softmax) = judge_pair(construction, "linear", "softmax")
    shares = float((n - 1) / (n + gap)), (n - 1) / (n - 1 + float(n) ** float(gap))
    parts = 1.0, float(NOISE), 1 + float(NOISE)
    pairs = zip((linear, softmax), shares, strict=True)
    error = max(relative_error([x.margin, x.v0, x.v1], [part * h for part in parts]) for x, h in pairs)
    holds = error < 1e-12 and hears_groups(construction) and words == SEPARATED
    shares_heard = {"linear_heard": linear.margin, "softmax_heard": softmax.margin}
    results = {"linear": linear.distinguish, "softmax": softmax.distinguish, **shares_heard}
    return Point({"n": n, "gap": gap, "groups": NOISE_GROUPS}, holds, **results)


def hears_groups(construction: Majority) -> bool:
    """Return whether linear gives noise count_g/(n+gap) of every group g, and the value's share, exactly.

    The n-1 noisy tokens are dealt out to the groups in turn, so that the sizes differ by one at most.
    """
    n, gap = construction.n, construction.gap
    counts = [len(range(group, n - 1, NOISE_GROUPS)) for group in range(NOISE_GROUPS)]
    attention = kernel_rows(construction, Linear())
    for label, rows in enumerate(attention.rows):
        expected = [label * (n - 1) / (n + gap), *(NOISE * count / (n + gap) for count in counts)]
        if [attention.outputs(row) for row in rows] != [tuple(map(rational, expected))]:
            return False
    return True


LIMITED = ("linear", "identity-features:normalised=no", "causal-linear", "delta")
STATES = ("causal-linear", "delta", "gated-delta")
RECALL_WIDTHS = (8, 16, 32)
RECALL_SAMPLING = Sampling(draws=200, confidence=0.999)
MAX_HEARD = 1e-12


@claim("recall-state", "6.10", "ours")
def state_size() -> Finding:
    """Associative recall with fixed weights: a state of width w (linear attention, the delta rule) recalls
    exactly from w orthogonal pairs; from w + 1 pairs of keys written with two digits, which share coordinates
    with the asked one, its P is below 1/2 (other keys may leave it alone). Softmax recalls from 2 w.

    Up to `width` pairs the other values are not heard at all; with one more they are.
    """
    cases = list(product(LIMITED, RECALL_WIDTHS))
    points = Points([*(within_point(*case) for case in cases), *(past_point(*case) for case in cases)])
    points += [softmax_recall_point(width) for width in RECALL_WIDTHS]
    return points.conclude(
        f"widths 8, 16, 32: with n = width pairs {', '.join(LIMITED)} hear {points.heard.max:.0f} of the "
        f"other values; with width + 1, P is {points.past.max:.2f} or less, and softmax's with 2 width is "
        f"{points.softmax.min:.4f} (certified)",
        f"P at most {points.past_most.max:.2f} past the state, {points.within.min:.2f} or more within it "
        "(ends of 99.9% intervals)",
    )


def _recall(mechanism: str, n: int, width: int) -> tuple[dict[str, object], Outcome]:
    outcome = judge(example(Recall, n=n, width=width), mechanism, sampling=RECALL_SAMPLING).outcome
    return {"mechanism": mechanism, "n": n, "width": width}, outcome


def within_point(mechanism: str, width: int) -> Point:
    """Check that n = width orthogonal pairs are recalled: nothing is heard where the asked value is 0."""
    parameters, outcome = _recall(mechanism, width, width)
    low, high = outcome.interval
    heard = abs(outcome.v0) / outcome.v1
    holds = heard < MAX_HEARD and 0.9 < low <= outcome.distinguish <= high
    return Point(parameters, holds, heard=heard, within=low)


def past_point(mechanism: str, width: int) -> Point:
    """Check that one pair more is one too many."""
    parameters, outcome = _recall(mechanism, width + 1, width)
    low, high = outcome.interval
    holds = low <= outcome.distinguish <= high < 0.5
    return Point(parameters, holds, past=outcome.distinguish, past_most=high)


def softmax_recall_point(width: int) -> Point:
    """Check that softmax recalls from twice as many pairs as there are coordinates."""
    answer = judge(example(Recall, n=2 * width, width=width), "softmax", "certified")
    parameters = {"mechanism": "softmax", "n": 2 * width, "width": width}
    return Point(parameters, answer.word == "distinguishes", softmax=answer.outcome.distinguish)


def answer_matrix(mechanism: str, n: int, width: int) -> torch.Tensor:
    """Return the share of each value in the answers to n random queries after n random pairs, row by row."""
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
    for width, name in product((4, 8), (*STATES, "softmax")):
        n = 3 * width
        matrix_rank = rank(answer_matrix(name, n, width))
        results = {"kept": matrix_rank} if name == "softmax" else {"lost": n - matrix_rank}
        expected = n if name == "softmax" else width
        points.add({"mechanism": name, "n": n, "width": width}, matrix_rank == expected, **results)
    return points.conclude(
        f"of n = 12 and 24 values, {', '.join(STATES)} of width n/3 lose {points.lost.min:.0f} and "
        f"{points.lost.max:.0f} dimensions whatever is asked; softmax keeps all {points.kept.min:.0f} and "
        f"{points.kept.max:.0f}",
        f"{points.lost.min:.0f} dimensions or more that no reader gets back",
    )
