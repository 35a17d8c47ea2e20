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
    (d, _), (_, a0), (a1, a1_most), (low_b, b), (low_c, c) = (_range(texts[x], x) for x in ("d", *AMPLITUDES["spike"]))
    m, delta, verdict = integer(body["m"], "m", 1), between(body["delta"], "delta", Fraction(1, 2)), body["verdict"]
    require(a0 <= a1_most, "the range of a0 exceeds that of a1")
    is_lost, value = body["triples"] is None, probability(body["bound"], "bound")
    require(verdict in (None, "blind" if is_lost else "distinguishes"), "verdict is not that of the theorem")
    # The spike's weight grows with a; with b and c it grows for softmax, and else falls.
    theta = kernel.temperature if isinstance(kernel, SoftmaxKernel) else math.inf
    a, low_r, k = a1_most if is_lost else a0, low_b + low_c, 0
    r = low_r if theta == math.inf else b + c
    require(a * (a + r) < theta and min(r, b, d - 3) > 0 and b < math.inf, "the ranges violate the hypotheses")
    eta = GAP - spike_weight(_limit(kernel), a + r, a, r, n)[1] * (a + b)
    report.note(eta > 0 or None, "the hypothesis eta > 0")
    decay = (eta / b) ** 2 * (d - 2) / 2
    # A smaller p would be far below every bound that can be stated.
    p = ends(AT.exp(AT.rational(-decay)))[1] if decay < 28_000 else Fraction(1, 1 << 40_000)
    report.note(p <= probability(body["p_at_most"], "p_at_most") or None, "p_at_most")
    if not is_lost:
        s1, (f1, _) = a1 * (a1 + low_r) / theta, spike_weight(kernel, a1 + low_r, a1, low_r, n)
        report.note(s1 > 1 and n * (s1 - 1) >= s1, "the hypothesis n (s1 - 1) >= s1 > 1")
        corners = list(product((f1, Fraction(1)), (low_b, b)))
        k = sum(
            all(f * (a1 + y_k * x) - (1 - f) * x + (y_d - 1) * c > GAP for f, x in corners)
            for y_k, y_d in product((1, -1), repeat=2)
        )
        report.note(k == integer(body["triples"], "triples", 1, 4), "triples")
    (_, most), (least, _), _ = network(p, Fraction(k, 8), Fraction(0), m)  # 1 - (1-p)^m and 1 - (1 - k/8)^m
    miss = most if is_lost else 1 - (least - most)
    report.note(miss <= (value if is_lost else 1 - Fraction(value)) or None, "bound")
    report.note(verdict is None or miss <= delta or None, "verdict")
    fires = "D0 and on D1" if is_lost else f"D1 with the signs (y_1, y_k3, y_d) of {k} of 8 triples, and on D0"
    return (
        f"m={short(m)}, tau = c + 0.1 and everything in {words(texts)} (d may grow with n)",
        f"{P} is at {'most' if is_lost else 'least'} {value}; at delta {body['delta']}: {verdict or 'no verdict'}.",
        f"Verified: the hypotheses of U{1 + is_lost} (docs/proofs.md) and its bounds. One neuron fires on {fires} with "
        f"probability at most {body['p_at_most']}.",
    )


def _verify_law(body: dict[str, Any], kernel: Kernel, n: int, report: Report) -> tuple[str, ...]:
    """Verify the exponent and both constants of a law of the margin a1 f1 - a0 f0."""
    names, exponent = AMPLITUDES[body["construction"]], Fraction(-1)
    texts, _ = fields(body["parameters"], "parameters", names), word(body["quantity"], "quantity", ("margin",))
    a0, a1, b, c, *query = (exact(texts[name], name, MOST_DIGITS) for name in names)
    require(0 <= a0 < a1 and min(b, c, *query) > 0, "the parameters are out of range")
    rows = [(query[0] if query else a + b + c, a, b + c, n) for a in (a0, a1)]
    f0, f1 = (spike_weight(kernel, *row) for row in rows)
    # From here on, f0 and f1 are bounds of n^-exponent f for every larger n.
    if isinstance(kernel, SoftmaxKernel):
        s0, s1 = (q * a / kernel.temperature for q, a, *_ in rows)
        exponent = min(s1 - 1, Fraction(0))
        report.note(all(s <= 1 or n * (s - 1) >= s for s in (s0, s1)), "the hypothesis n (s - 1) >= s")
        f0, f1 = ((f[0], Fraction(1)) if s > 1 else (Fraction(s == 1, 2), f[1]) for f, s in ((f0, s0), (f1, s1)))
        if s1 < 1:
            log, s = AT.log(AT.rational(n)), AT.rational(s1)
            power = AT.exp(s * log)
            k = (power - 1) / n if power * (1 - s) >= 1 else s * AT.exp((1 / s - 1) * AT.log(1 - s))
            f0, f1 = (Fraction(0), ends(AT.exp(AT.rational(s0 - s1) * log))[1]), (ends(1 / (1 + k))[0], Fraction(1))
    else:
        limits = [spike_weight(_limit(kernel), *row) for row in rows]
        require(limits[1][1] < 1, "the weight of the spike is too close to 1")
        (least, most0), (_, most1) = ([(n - 1) * f / (1 - f) for f in pair] for pair in limits)
        # Where quotients of scores do not depend on n, n times the margin is monotone: D0 and D1 at n, or in the limit.
        f0, f1 = (n * f0[0], most0) if isinstance(kernel, TaylorKernel) else (least, n * f0[1]), (n * f1[0], most1)
    low, high = (exact(body[name], name, MOST_DIGITS) for name in ("low", "high"))
    report.note(exact(body["exponent"], "exponent") == exponent, "exponent")
    report.note(low <= a1 * f1[0] - a0 * f0[1] or None, "low")
    report.note(high >= a1 * f1[1] - a0 * f0[0] or None, "high")
    return (
        f"{words(texts)} and any d and tau",
        f"The margin, by which a neuron with all signs + reads more on D1 than on D0, is n^({body['exponent']}) times "
        f"a number from {body['low']} to {body['high']}.",
        "Verified: the hypotheses of the law (docs/theory.md 3.8) and both ends.",
    )
