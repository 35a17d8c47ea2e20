"""Verification of uniform theorems (U1, U2: docs/proofs.md) and of laws with constants (L1 to L4: docs/theory.md 3.8).

The theorems are proved in the documentation. Their hypotheses and bounds are computed here again: attention weights are
enclosed by fractions, and all else follows in fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

from separatrix.checker.arithmetic import ends, intervals
from separatrix.checker.certificate import read_kernel
from separatrix.checker.check import Report, same_digest
from separatrix.checker.document import (
    MOST_DIGITS,
    Malformed,
    between,
    exact,
    fields,
    header,
    integer,
    probability,
    require,
    word,
)
from separatrix.checker.kernels import Kernel, Logit, PowerKernel, SoftmaxKernel, TaylorKernel
from separatrix.checker.probability import Enclosure, network
from separatrix.checker.proof import short
from separatrix.checker.statement import ONLY_THIS_READER, P, subject, words

UNIFORM, LAW = "separatrix uniform proof", "separatrix law"
FIELDS = {
    UNIFORM: ("ranges", "m", "delta", "p_at_most", "triples", "bound", "verdict"),
    LAW: ("parameters", "quantity", "exponent", "low", "high"),
}
AMPLITUDES = {"spike": ("a0", "a1", "b", "c"), "cross": ("a0", "a1", "b", "c", "r_Q")}
GAP = Fraction(1, 10)
"""tau - c in the uniform theorems."""
AT = intervals(2048)


def check_theorem(document: dict[str, Any]) -> Report:
    """Verify a uniform proof or a law given as a JSON value, whose format is known."""
    report, name = Report(), document["format"]
    try:
        body = header(document, name, 1, ("from", *FIELDS[name]))
        word(body["construction"], "construction", AMPLITUDES if name == LAW else ("spike",))
        kernel, n = read_kernel(body["mechanism"]), integer(body["from"], "from", 3)
        report.note(same_digest(body), "sha256")
        place, *claims = (_verify_uniform if name == UNIFORM else _verify_law)(body, kernel, n, report)
    except Malformed as fault:
        return Report(0, [str(fault)])
    limits = f"Not claimed: anything for other values, in floating-point arithmetic, and {ONLY_THIS_READER}."
    statement = (*subject(body, f"{place}, for every n >= {short(n)}", "ones"), *claims, limits)
    report.statement = () if report.failed else statement
    return report


def spike_weight(kernel: Kernel, query: Fraction, a: Fraction, r: Fraction, n: int) -> Enclosure:
    """Return f = w/(w + n - 1) for a query with this row sum, a spike with a + r, and n - 1 other keys with r."""
    logits = Logit(query * (a + r), Fraction(n)), Logit(query * r, Fraction(n))
    if (w := kernel.ratio(*logits)) is not None:
        return w / (w + n - 1), w / (w + n - 1)
    spike, other = (kernel.score(logit, AT) for logit in logits)
    return ends(1 / (1 + (n - 1) * (other / spike)))


def _limit(kernel: Kernel) -> Kernel:
    """Return the kernel whose quotients of scores are the limits, and upper bounds, of those of a polynomial."""
    return PowerKernel(Fraction(kernel.order)) if isinstance(kernel, TaylorKernel) else kernel


def _range(text: object, name: str) -> tuple[Fraction, Any]:
    """Parse low:high; a missing low end is 0, a missing high end is infinite."""
    parts = text.split(":") if isinstance(text, str) else []
    require(len(parts) == 2, f"{name} is not a range low:high")
    low, high = (exact(part or "0", name, MOST_DIGITS) for part in parts)
    require(low >= 0 and (low <= high or not parts[1]), f"the range of {name} is empty")
    return low, high if parts[1] else math.inf


def _verify_uniform(body: dict[str, Any], kernel: Kernel, n: int, report: Report) -> tuple[str, ...]:
    """Verify the hypotheses, the bounds and the verdict of U1, or of U2 if no triples are stated."""
    texts = fields(body["ranges"], "ranges", ("d", *AMPLITUDES["spike"]))
    ranges = {name: _range(text, name) for name, text in texts.items()}
    (d, _), (_, a0), (a1, a1_most) = ranges["d"], ranges["a0"], ranges["a1"]
    (low_b, b), (low_c, c) = ranges["b"], ranges["c"]
    require(a0 <= a1_most, "the range of a0 exceeds that of a1")
    m = integer(body["m"], "m", 1)
    delta = between(body["delta"], "delta", Fraction(1, 2))
    bound = probability(body["bound"], "bound")
    is_lost, verdict = body["triples"] is None, body["verdict"]
    require(verdict in (None, "blind" if is_lost else "distinguishes"), "verdict is not that of the theorem")
    # Lemma 4, for the rows of D1 in U2, and those of D0 in U1. The spike's weight grows with a; with b and c it grows
    # for softmax, and else falls.
    theta = kernel.temperature if isinstance(kernel, SoftmaxKernel) else math.inf
    a = a1_most if is_lost else a0
    r = low_b + low_c if theta == math.inf else b + c
    require(a * (a + r) < theta and min(r, b, d - 3) > 0 and b < math.inf, "the ranges violate the hypotheses")
    eta = GAP - spike_weight(_limit(kernel), a + r, a, r, n)[1] * (a + b)
    report.note(eta > 0 or None, "the hypothesis eta > 0")
    decay = (eta / b) ** 2 * (d - 2) / 2
    # A smaller p would be far below every bound that can be stated.
    p = ends(AT.exp(AT.rational(-decay)))[1] if decay < 28_000 else Fraction(1, 1 << 40_000)
    report.note(p <= probability(body["p_at_most"], "p_at_most") or None, "p_at_most")
    triples = 0
    if not is_lost:
        s1 = a1 * (a1 + low_b + low_c) / theta
        report.note(s1 > 1 and n * (s1 - 1) >= s1, "the hypothesis n (s1 - 1) >= s1 > 1")
        weights = spike_weight(kernel, a1 + low_b + low_c, a1, low_b + low_c, n)[0], Fraction(1)
        triples = _count_firing_triples(weights, a1, (low_b, b), c)
        report.note(triples == integer(body["triples"], "triples", 1, 4), "triples")
    # P(some neuron fires) if each fires with probability p, and with that of the triples.
    (_, fires_most), (fires_least, _), _ = network(p, Fraction(triples, 8), Fraction(0), m)
    error = fires_most if is_lost else 1 - (fires_least - fires_most)
    report.note(error <= (bound if is_lost else 1 - Fraction(bound)) or None, "bound")
    report.note(verdict is None or error <= delta or None, "verdict")
    fires = f"D1 with the signs (y_1, y_k3, y_d) of {triples} of 8 triples, and on D0"
    return (
        f"m={short(m)}, tau = c + 0.1 and everything in {words(texts)} (d may grow with n)",
        f"{P} is at {'most' if is_lost else 'least'} {bound}; at delta {body['delta']}: {verdict or 'no verdict'}.",
        f"Verified: the hypotheses of U{2 if is_lost else 1} (docs/proofs.md) and its bounds. One neuron fires on "
        f"{'D0 and on D1' if is_lost else fires} with probability at most {body['p_at_most']}.",
    )


def _count_firing_triples(weights: Enclosure, a1: Fraction, b_ends: Enclosure, c: Fraction) -> int:
    """Return how many triples with y_1 = + fire at both ends of the spike's weight and of b, and at the largest c."""

    def fires(y_k: int, y_d: int) -> bool:
        ends = product(weights, b_ends)
        return all(f * (a1 + y_k * b) - (1 - f) * b + (y_d - 1) * c > GAP for f, b in ends)

    return sum(fires(y_k, y_d) for y_k, y_d in product((1, -1), repeat=2))


def _verify_law(body: dict[str, Any], kernel: Kernel, n: int, report: Report) -> tuple[str, ...]:
    """Verify the exponent and both constants of a law of the margin a1 f1 - a0 f0."""
    names = AMPLITUDES[body["construction"]]
    texts = fields(body["parameters"], "parameters", names)
    word(body["quantity"], "quantity", ("margin",))
    a0, a1, b, c, *query = (exact(texts[name], name, MOST_DIGITS) for name in names)
    require(0 <= a0 < a1 and min(b, c, *query) > 0, "the parameters are out of range")
    rows = [(query[0] if query else a + b + c, a, b + c) for a in (a0, a1)]
    if isinstance(kernel, SoftmaxKernel):
        exponents = [row_sum * a / kernel.temperature for row_sum, a, _ in rows]
        report.note(all(s <= 1 or n * (s - 1) >= s for s in exponents), "the hypothesis n (s - 1) >= s")
        exponent = min(exponents[1] - 1, Fraction(0))
        scaled = _softmax_weights(kernel, rows, exponents, n)
    else:
        exponent = Fraction(-1)
        scaled = _polynomial_weights(kernel, rows, n)
    (f0_least, f0_most), (f1_least, f1_most) = scaled
    low, high = (exact(body[name], name, MOST_DIGITS) for name in ("low", "high"))
    report.note(exact(body["exponent"], "exponent") == exponent, "exponent")
    report.note(low <= a1 * f1_least - a0 * f0_most or None, "low")
    report.note(high >= a1 * f1_most - a0 * f0_least or None, "high")
    return (
        f"{words(texts)} and any d and tau",
        f"The margin, by which a neuron with all signs + reads more on D1 than on D0, is n^({body['exponent']}) times "
        f"a number from {body['low']} to {body['high']}.",
        "Verified: the hypotheses of the law (docs/theory.md 3.8) and both ends.",
    )


def _softmax_weights(
    kernel: Kernel, rows: list[tuple[Fraction, Fraction, Fraction]], exponents: list[Fraction], n: int
) -> tuple[Enclosure, Enclosure]:
    """Enclose f0 and f1, multiplied by n^(1-s1) if s1 < 1, at every n from this one on (L2, L3)."""
    s0, s1 = exponents
    if s1 < 1:
        log, s = AT.log(AT.rational(n)), AT.rational(s1)
        power = AT.exp(s * log)
        # (x^s - 1)/x is largest at x = (1-s)^(-1/s), or at n if that is smaller.
        largest = (power - 1) / n if power * (1 - s) >= 1 else s * AT.exp((1 / s - 1) * AT.log(1 - s))
        f0_most = ends(AT.exp(AT.rational(s0 - s1) * log))[1]
        return (Fraction(0), f0_most), (ends(1 / (1 + largest))[0], Fraction(1))
    (f0_least, f0_most), (f1_least, f1_most) = (spike_weight(kernel, *row, n) for row in rows)
    # A weight moves monotonically to its limit: 1 if s > 1, 1/2 if s = 1, 0 otherwise.
    f0 = (f0_least, Fraction(1)) if s0 > 1 else (Fraction(1, 2) if s0 == 1 else Fraction(0), f0_most)
    f1 = (f1_least, Fraction(1)) if s1 > 1 else (Fraction(1, 2), f1_most)
    return f0, f1


def _polynomial_weights(
    kernel: Kernel, rows: list[tuple[Fraction, Fraction, Fraction]], n: int
) -> tuple[Enclosure, Enclosure]:
    """Enclose n f0 and n f1 at every n from this one on (L1, L4)."""
    weights = [spike_weight(kernel, *row, n) for row in rows]
    limits = [spike_weight(_limit(kernel), *row, n) for row in rows]
    require(limits[1][1] < 1, "the weight of the spike is too close to 1")
    (limit0_least, limit0_most), (_, limit1_most) = ([(n - 1) * f / (1 - f) for f in pair] for pair in limits)
    f1 = n * weights[1][0], limit1_most
    if isinstance(kernel, TaylorKernel):
        return (n * weights[0][0], limit0_most), f1
    # Where quotients of scores do not depend on n, n times the margin is monotone: both weights at n, or in the limit.
    return (limit0_least, n * weights[0][1]), f1
