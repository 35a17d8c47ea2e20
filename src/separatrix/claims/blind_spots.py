"""Theory 6.1 to 6.4, blind spots: scaled queries, repeated tokens, patterns too fine, and low rank."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import scipy

from separatrix.claims._base import Finding, Point, Points, claim
from separatrix.claims._tools import example, judge, relative_error
from separatrix.claims.separations import UNNORMALISED
from separatrix.constructions import Description
from separatrix.constructions.duplication import Duplication
from separatrix.constructions.injectivity import Injectivity
from separatrix.constructions.parity import Parity
from separatrix.constructions.routing import Routing
from separatrix.core.numbers.logforms import rational
from separatrix.core.tensors import Tensor, torch
from separatrix.exact.engines import certified, closed
from separatrix.exact.outputs.kernels import kernel_rows, same_rows
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.mechanisms import Mechanism, Power, Softmax, mechanism_named
from separatrix.mechanisms.features._base import FeatureMechanism

HOMOGENEOUS = ("linear", "power:beta=3", "identity-features", "relu-features")
"""Homogeneous in the query, and proved equal in rationals."""
HOMOGENEOUS_ON_TOKENS = ("relu-features", "squared-relu-features", "identity-features", "dpfp", "linear")
"""Homogeneous in the query, and compared bit by bit on random tokens."""
NOT_HOMOGENEOUS = ("softmax", "elu", "identity-features:normalised=no")
QUERY_SIZES = (10, 1000, 10**18)
FACTORS = ("2", "1/7", "1000")


def doubling_point(mechanism: str, changes: bool) -> Point:
    """Check whether doubling every query changes the output on 60 random tokens of width 8."""
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 60, 8, generator=draw, dtype=torch.float64) for _ in range(3))
    attend = mechanism_named(mechanism)
    change = float((attend(2 * q, k, v) - attend(q, k, v)).abs().max())
    return Point({"mechanism": mechanism, "factor": 2}, change > 1e-3 if changes else change == 0, change=change)


@claim("injectivity", "6.1", "rec")
def equal_rows() -> Finding:
    """Normalised attention whose scores are positively homogeneous in the query (linear, ReLU features; arXiv
    2412.06590) gives q and 2q the same row at any n, so no reader of it tells them apart.

    In rationals on the construction, and to the last bit on random tokens: doubling rounds nothing.
    """
    points = Points(equal_queries_point(*case) for case in product(HOMOGENEOUS, QUERY_SIZES, FACTORS))
    points += [doubling_point(mechanism, changes=False) for mechanism in HOMOGENEOUS_ON_TOKENS]
    return points.conclude(
        f"equal rows in rationals for {', '.join(HOMOGENEOUS)} at n = 10 to 1e18, factors "
        f"{', '.join(FACTORS)}; not a bit changes on random tokens for {', '.join(HOMOGENEOUS_ON_TOKENS)}",
        f"difference exactly {points.change.max:.0f}: no reader at all tells q from 2q",
    )


def equal_queries_point(mechanism: str, n: int, factor: str) -> Point:
    """Check that both labels provably get the same row."""
    outputs = proved_outputs(example(Injectivity, n=n, factor=factor), mechanism_named(mechanism))
    # The lemma, and the rows themselves: they are fractions here.
    is_equal = outputs.has_equal_rows and outputs.rows[0] == outputs.rows[1]
    return Point({"mechanism": mechanism, "n": n, "factor": factor}, is_equal, equal_rows=is_equal)


@claim("injectivity-softmax", "6.1", "rec")
def softmax_differs() -> Finding:
    """Softmax gives q and 2q different rows: 1/(1+(n-1)n^{-q gap}) on the asked token.

    The rows differ, in balls, and their weights are the closed form's.
    """
    points = Points(softmax_query_point(*case) for case in product(QUERY_SIZES, FACTORS))
    points += [doubling_point(mechanism, changes=True) for mechanism in NOT_HOMOGENEOUS]
    return points.conclude(
        f"softmax's rows differ by {points.apart.min:.2g} or more at n = 10 to 1e18 (proved), and are the "
        f"closed form's to {points.error.max:.0e}; {', '.join(NOT_HOMOGENEOUS)} change on random tokens",
        f"apart by {points.apart.min:.2g} to {points.apart.max:.2g}; random tokens change by "
        f"{points.change.min:.2f} or more",
    )


def softmax_query_point(n: int, factor: str) -> Point:
    """Check that the two rows provably differ and have the weights of the closed form."""
    construction = example(Injectivity, n=n, factor=factor)
    outcome, rows = certified.solve(construction, Softmax()), proved_outputs(construction, Softmax())
    exponents = (float(construction.query), float(construction.query * construction.factor))
    low, high = (1 / (1 + (n - 1) * math.exp(-e * math.log(n))) for e in exponents)
    error = relative_error([outcome.v0, outcome.margin], [low, high - low])
    holds = rows.differ and not rows.has_equal_rows and error < 1e-11
    return Point({"n": n, "factor": factor}, holds, apart=abs(outcome.margin), error=error)


SCORES: dict[str, Callable[[Fraction, int], Fraction]] = {
    "softmax": lambda z, n: Fraction(3) ** int(n * z),
    "linear": lambda z, n: z,
    "power:beta=3": lambda z, n: z**3,
    "taylor:order=2": lambda z, n: 1 + z + z * z / 2,
}
"""Scores of a logit that is a multiple of 1/n. For softmax e^(1/n) may be any number, and is 3 here."""
REPEATED_ON_TOKENS = ("softmax", "linear", "hardmax", "relu-features", "elu", "based")
SEES_LENGTH = ("sparsemax", "topk", "logn-softmax")
MAX_CHANGE = 1e-12


def outputs_on_copies(mechanism: str, copies: int) -> tuple[Tensor, Tensor]:
    """Return the outputs for 30 random positive tokens of width 5, alone and with every key repeated."""
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.rand(1, 1, 30, 5, generator=draw, dtype=torch.float64) for _ in range(3))
    attend = mechanism_named(mechanism)
    return attend(q, k, v), attend(q, k.repeat(1, 1, copies, 1), v.repeat(1, 1, copies, 1))


@claim("duplication-normalised", "6.2", "ours")
def copies_cancel() -> Finding:
    """Repeating every token r times leaves softmax, linear and every other normalised score of the logit
    unchanged, exactly: no reader of them counts.

    Equal rows in exact arithmetic, whatever the scores; to rounding on random tokens.
    """
    points = Points(equal_copies_point(*case) for case in product(SCORES, (10, 100, 10**18), (2, 3, 1000)))
    points += [tripling_point(mechanism, changes=False) for mechanism in REPEATED_ON_TOKENS]
    change = points.change.max
    points += [tripling_point(mechanism, changes=True) for mechanism in SEES_LENGTH]
    return points.conclude(
        f"equal rows, proved, for {', '.join(SCORES)} at n = 10 to 1e18, up to 1000 copies; "
        f"{', '.join(REPEATED_ON_TOKENS)} give tripled random tokens the same to {change:.0e}; "
        f"{', '.join(SEES_LENGTH)}, whose weights see the number of tokens, do not",
        f"difference exactly 0 where proved, {change:.0e} in float64",
    )


def equal_copies_point(mechanism: str, n: int, copies: int) -> Point:
    """Check that both labels provably get the same row, and that sums over all copies say the same."""
    construction = example(Duplication, n=n, r1=copies)
    is_equal = same_rows(construction, mechanism_named(mechanism))
    once, copied = (sum_over_copies(mechanism, n, label) for label in construction.descriptions)
    parameters = {"mechanism": mechanism, "n": n, "r1": copies}
    return Point(parameters, is_equal and once == copied, equal_rows=is_equal, equal_sums=once == copied)


def sum_over_copies(mechanism: str, n: int, description: Description) -> Fraction:
    """Return `sum of count u v / sum of count u` in rationals."""
    score, groups = SCORES[mechanism], description.groups
    u = [group.count * score(Fraction(group.key[0]), n) for group in groups]
    terms = (weight * Fraction(group.value[0]) for weight, group in zip(u, groups, strict=True))
    return sum(terms, Fraction(0)) / sum(u, Fraction(0))


def tripling_point(mechanism: str, changes: bool) -> Point:
    """Check whether three copies of everything change something, or nothing but rounding."""
    once, thrice = outputs_on_copies(mechanism, 3)
    change = float((once - thrice).abs().max())
    return Point({"mechanism": mechanism, "r1": 3}, change > 1e-3 if changes else change < MAX_CHANGE, change=change)


@claim("duplication-unnormalised", "6.2", "ours")
def copies_multiply() -> Finding:
    """Unnormalised linear attention is multiplied by r1/r0, and this reader sees it: linear wins.

    r1/r0 times as much, on the construction and on random tokens, and the reader sees it.
    """
    points = Points()
    for r0, r1 in ((1, 2), (1, 3), (2, 7), (1, 1000)):
        tau = f"{r0 + r1}/2"
        answer = judge(example(Duplication, r0=r0, r1=r1, tau=tau), UNNORMALISED)
        error = abs(answer.outcome.v1 / answer.outcome.v0 * r0 / r1 - 1)
        holds = error < MAX_CHANGE and answer.word == "distinguishes"
        parameters = {"n": 100, "r0": r0, "r1": r1, "tau": tau}
        points.add(parameters, holds, error=error, distinguish=answer.outcome.distinguish)
    once, thrice = outputs_on_copies(UNNORMALISED, 3)
    error = float((thrice / once / 3 - 1).abs().max())
    points.add({"tokens": "random", "r1": 3}, error < MAX_CHANGE, error=error)
    return points.conclude(
        f"outputs are r1/r0 times as large to {points.error.max:.0e}, and the reader tells once from twice "
        f"with P = {points.distinguish.max:.6f} (exact)",
        f"error {points.error.max:.0e}, allowed {MAX_CHANGE:.0e}",
    )


MAX_PATTERN_LEFT = 1e-12
CIRCLES = (8, 12)
CUBES = (2, 3, 4, 5)
"""Bits of a word: n = 2^bits."""


@claim("routing-degree", "6.3", "ours")
def routing_degree() -> Finding:
    """n keys on a circle, values that alternate: a kernel that is a polynomial of degree below n/2 in the
    logit cancels the pattern, degree n/2 does not, and softmax passes I_{n/2}/I_0 (summed over multiples of
    n).

    Below degree n/2 the pattern comes out as rounding; from n/2 on, and through softmax, it does not.
    """
    points = Points()
    kernels = ("power:beta", "taylor:order")
    for n in CIRCLES:
        for degree in range(1, n // 2):
            worst = max(abs(circle_margin(n, f"{kernel}={degree}")) for kernel in kernels)
            points.add({"n": n, "degree": degree}, worst < MAX_PATTERN_LEFT, cancelled=worst)
        for kernel in kernels:
            share = abs(circle_margin(n, f"{kernel}={n // 2}"))
            points.add({"n": n, "degree": n // 2, "kernel": kernel.partition(":")[0]}, share > 1e-6, passed=share)
        softmax, scale = circle_margin(n, "softmax"), 15 * math.log(n)
        # `ive` is exp(-scale) times the Bessel function, a factor that cancels in the ratio.
        finest = sum(2 * scipy.special.ive(n // 2 + n * k, scale) for k in range(9))
        level = scipy.special.ive(0, scale) + sum(2 * scipy.special.ive(n * k, scale) for k in range(1, 9))
        error = relative_error(softmax, finest / level)
        points.add({"n": n, "mechanism": "softmax"}, error < 1e-9, softmax=softmax, error=error)
    return points.conclude(
        f"power and taylor kernels of degree below n/2 pass {points.cancelled.max:.0e} of the pattern, "
        f"degree n/2 {points.passed.min:.1e}, softmax {points.softmax.min:.3f} or more, as the Bessel sums "
        f"say (to {points.error.max:.0e}), n = 8, 12",
        f"{points.cancelled.max:.0e} of the pattern left, allowed {MAX_PATTERN_LEFT:.0e}",
    )


def circle_margin(n: int, mechanism: str) -> float:
    """Return how much of the alternating pattern comes through."""
    return closed.solve(example(Routing, n=n), mechanism_named(mechanism)).margin


@claim("parity-degree", "6.3", "ours")
def parity_degree() -> Finding:
    """n = 2^w words, values by parity: power attention of degree below w = log2 n gives both labels the same
    row, exactly; degree w does not.

    In rationals: degree below log2 n gives both labels the same row, degree log2 n does not.
    """
    points = Points()
    for bits in CUBES:
        for degree in range(1, bits + 1):
            construction, power = example(Parity, n=2**bits), Power(beta=degree)
            is_equal = same_rows(construction, power)
            *_, margin = kernel_rows(construction, power).margin()
            holds = is_equal == (degree < bits) and (margin == 0) == is_equal
            points.add({"n": 2**bits, "degree": degree}, holds, passed=float(margin))
    least = min(filter(None, points.passed), default=math.nan)
    return points.conclude(
        "rows are equal in rationals for every degree below log2 n, n = 4 to 32, and differ at degree log2 n "
        f"by {least:.1e} or more",
        "difference exactly 0 below log2 n: no reader at all finds the parity",
    )


@claim("parity-softmax", "6.3", "ours")
def parity_softmax() -> Finding:
    """Softmax at the logit scale log n passes exactly ((n-1)/(n+1))^w of the parity."""
    points = Points()
    for bits in (*CUBES, 8):
        n = 2**bits
        *_, margin = kernel_rows(example(Parity, n=n), Softmax()).margin()
        expected = Fraction(n - 1, n + 1) ** bits
        points.add({"n": n}, margin == rational(expected), passed=float(margin), claimed=float(expected))
    return points.conclude(
        f"equal as fractions for n = 4 to 256: {points.passed.min:.3f} to {points.passed.max:.3f}",
        "difference exactly 0",
    )


MAPS = ("identity-features", "relu-features", "elu", "hedgehog", "dpfp", "based", "favor:features=16")
WIDTH, TOKENS = 3, 96
MIN_SINGULAR_VALUE = 1e-10
"""Singular values below this share of the largest are rounding."""


def attention_matrix(mechanism: Mechanism, q: Tensor, k: Tensor) -> Tensor:
    """Return the attention matrix, one row per query."""
    return mechanism.definition(q, k, torch.eye(TOKENS, dtype=q.dtype)[None, None])[0, 0]


def rank(matrix: Tensor) -> int:
    """Return the number of singular values that are not rounding."""
    values = torch.linalg.svdvals(matrix)
    return int((values > MIN_SINGULAR_VALUE * values[0]).sum())


def distance_to_permutation(matrix: Tensor) -> float:
    """Return the Frobenius distance to the nearest permutation matrix."""
    # All permutation matrices have the same norm, so the nearest one has the largest inner product.
    rows, columns = scipy.optimize.linear_sum_assignment(matrix.numpy(), maximize=True)
    nearest = torch.zeros_like(matrix)
    nearest[rows, columns] = 1
    return float((matrix - nearest).norm())


@claim("feature-rank", "6.4", "ours")
def feature_rank() -> Finding:
    """rank(phi(Q) phi(K)ᵀ), rows divided by their sums or not, is at most the number r of features at any n,
    so it stays sqrt(n - r) away from every permutation (Frobenius norm; Eckart and Young); softmax routes
    one.

    Random tokens through every map; then a ring of tokens, each asking for the next, through softmax.
    """
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 1, TOKENS, WIDTH, generator=draw, dtype=torch.float64) for _ in range(2))
    points = Points([*(map_point(name, q, k) for name in MAPS), ring_point()])
    *map_ranks, _ = (f"{x:.0f}" for x in points.rank)
    *map_distances, ring_distance = points.away
    return points.conclude(
        f"{TOKENS} random tokens of width {WIDTH}: rank {', '.join(map_ranks)} for {', '.join(MAPS)}, so "
        f"{min(map_distances):.1f} or more from every permutation; softmax on tokens of width 2 has rank "
        f"{TOKENS} and comes within {ring_distance:.0e} of one",
        f"rank {points.room.min:.0f} to {points.room.max:.0f} below the number r of features; distance "
        f"{points.excess.min:.2f} or more above sqrt(n - r)",
    )


def map_point(name: str, q: Tensor, k: Tensor) -> Point:
    """Check that the rank is at most the number of features, and permutations are as far off as that says."""
    mechanism = mechanism_named(name)
    assert isinstance(mechanism, FeatureMechanism)
    features, matrix = mechanism.compute_features(k, "key").shape[-1], attention_matrix(mechanism, q, k)
    matrix_rank, away = rank(matrix), distance_to_permutation(matrix)
    excess = away - math.sqrt(TOKENS - min(features, TOKENS))
    holds = matrix_rank <= features < TOKENS and excess >= 0
    results = {"rank": matrix_rank, "room": features - matrix_rank, "away": away, "excess": excess}
    return Point({"mechanism": name, "n": TOKENS, "width": WIDTH, "features": features}, holds, **results)


def ring_point() -> Point:
    """Check that softmax routes every token of a ring to the next one."""
    angles = 2 * math.pi * torch.arange(TOKENS, dtype=torch.float64) / TOKENS
    # A factor of 100 on both sides makes neighbours' logits differ enough for softmax to pick one.
    ring = 100 * torch.stack([angles.cos(), angles.sin()], -1)[None, None]
    matrix = attention_matrix(Softmax(), ring, ring.roll(1, -2))
    matrix_rank, away = rank(matrix), distance_to_permutation(matrix)
    holds = matrix_rank == TOKENS and away < 1e-6
    return Point({"mechanism": "softmax", "n": TOKENS, "width": 2}, holds, rank=matrix_rank, away=away)
