"""Constructions, mechanisms and the reader, written a second time from their descriptions.

Nothing of Separatrix is imported here. Tokens are built one by one from docs/theory.md and from the text that
`separatrix list constructions NAME` prints, attention is a loop over tokens, and every sign vector is
enumerated. Numbers are fractions where the mechanism allows it and have 60 decimal digits elsewhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath

mpmath.mp.dps = 60

Number = Any
"""A Fraction or an mpmath number."""
Point = Mapping[str, Fraction]

TIE = mpmath.mpf(10) ** -40
"""Two numbers of 60 digits that are closer than this are equal."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of one label, in order, and the rows that are asked.

    `logits[row][token]` is in units of log n if `in_log_n`, and a plain number otherwise.
    """

    logits: tuple[tuple[Number, ...], ...]
    values: tuple[tuple[Fraction, ...], ...]
    in_log_n: bool = True

    @property
    def n(self) -> int:
        return len(self.values)


def exact(number: Number) -> Number:
    """A fraction as a number of 60 digits; other numbers as they are."""
    return mpmath.mpf(number.numerator) / number.denominator if isinstance(number, Fraction) else number


def dot(one: Sequence[Number], other: Sequence[Number]) -> Number:
    return sum((x * y for x, y in zip(one, other, strict=True)), Fraction(0))


# Constructions


def routing(p: Point, label: int) -> Tokens:
    """n keys on a circle; in D1 values alternate between b+a and b-a."""
    n = int(p["n"])
    logits = [exact(p["scale"]) * (mpmath.mpf("1.25") + mpmath.cos(2 * mpmath.pi * j / n)) for j in range(n)]
    signs = [1 if j % 2 == 0 else -1 for j in range(n)]
    return Tokens((tuple(logits),), tuple((p["b"] + label * sign * p["a"],) for sign in signs))


def regression(p: Point, label: int) -> Tokens:
    """Examples (x, <w,x>) along the axes, keys x width/n, query (1, ..., 1)."""
    n, width = int(p["n"]), int(p["width"])
    weight = [p["a1"] if label else p["a0"]] * width
    logits, values = [], []
    for axis in range(width):
        for _ in range(n // width):
            x = [Fraction(int(axis == i)) for i in range(width)]
            logits.append(dot([Fraction(1)] * width, [coordinate * width / n for coordinate in x]))
            values.append((dot(weight, x),))
    return Tokens((tuple(logits),), tuple(values), in_log_n=False)


def recall(p: Point, label: int) -> Tokens:
    """n pairs; a key is its number, one unit vector a digit. The first pair is asked."""
    n, width = int(p["n"]), int(p["width"])
    digits = (
        int(p["digits"])
        if "digits" in p
        else next(g for g in range(1, width + 1) if width % g == 0 and (width // g) ** g >= n)
    )
    base = width // digits

    def key(number: int) -> list[Fraction]:
        coordinates = []
        for _ in range(digits):
            coordinates += [Fraction(int(number % base == i)) for i in range(base)]
            number //= base
        return coordinates

    asked = key(0)
    logits = tuple(p["scale"] * dot(asked, key(number)) / digits for number in range(n))
    return Tokens((logits,), tuple((Fraction(label if number == 0 else 1),) for number in range(n)))


def majority(p: Point, label: int) -> Tokens:
    """n-1 tokens carry a0 or a1 and the noise of their group; one louder token carries nothing."""
    n, groups = int(p["n"]), int(p["groups"])
    logits, values = [1 + p["gap"]], [(Fraction(0),) * (groups + 1)]
    for token in range(n - 1):
        noise = tuple(p["noise"] if token % groups == group else Fraction(0) for group in range(groups))
        logits.append(Fraction(1))
        values.append((p["a1"] if label else p["a0"], *noise))
    return Tokens((tuple(logits),), tuple(values))


def spikes(p: Point, label: int) -> Tokens:
    """The spike is large in the column of its class, here the first; a row for each class that is asked."""
    n, k = int(p["n"]), int(p["k"])
    keys = [[p["a1"]] + [p["a0"]] * (k - 1)] + [[p["b"]] * k for _ in range(n - 1)]
    classes = [0] if label else list(range(1, k))
    rows = [[Fraction(int(asked == column)) for column in range(k)] for asked in classes]
    logits = tuple(tuple(dot(row, key) for key in keys) for row in rows)
    return Tokens(logits, tuple((Fraction(int(token == 0)),) for token in range(n)))


def level(p: Point, label: int) -> Tokens:
    """One token of the logit 1+gap carries the level numbered `at` in D0 and the next one in D1."""
    n = int(p["n"])
    amplitude = p["a0"] + (p["a1"] - p["a0"]) * (p["at"] + label) / (p["levels"] - 1)
    logits = (1 + p["gap"], *[Fraction(1)] * (n - 1))
    return Tokens((logits,), ((amplitude,), *[(Fraction(0),)] * (n - 1)))


def level_threshold(p: Point) -> Fraction:
    """Half-way between the two levels, where the text leaves tau out."""
    return p["a0"] + (p["a1"] - p["a0"]) * (p["at"] + Fraction(1, 2)) / (p["levels"] - 1)


def rough(p: Point, label: int, first: int, identity: bool) -> Tokens:
    """The matrix of `spike` without noise: d-2 blocks as equal as n allows, spikes evenly apart.

    The first spike is token `first`. Entries are in units of sqrt(log n), and logits in units of log n.
    """
    n, d, count = int(p["n"]), int(p["d"]), int(p.get("spikes", Fraction(1)))
    places = {(first + i * n // count) % n for i in range(count)}
    blocks = d - 2
    sizes = [n // blocks + (block < n % blocks) for block in range(blocks)]
    matrix = []
    for block, size in enumerate(sizes):
        for _ in range(size):
            spike = (p["a1"] if label else p["a0"]) if len(matrix) in places else Fraction(0)
            inside = [p["b"] if block == column else Fraction(0) for column in range(blocks)]
            matrix.append((spike, *inside, p["c"]))
    if identity:
        logits = tuple(tuple(dot(query, key) for key in matrix) for query in matrix)
    else:
        logits = tuple(tuple(sum(query) * sum(key) for key in matrix) for query in matrix)
    return Tokens(logits, tuple(matrix))


def injectivity(p: Point, label: int) -> Tokens:
    """The query is `query` in D0 and `factor` times that in D1; one key of n is 1+gap, the others are 1."""
    keys = [1 + p["gap"]] + [Fraction(1)] * (int(p["n"]) - 1)
    query = p["query"] * (p["factor"] if label else 1)
    return Tokens((tuple(query * key for key in keys),), tuple((Fraction(int(i == 0)),) for i in range(len(keys))))


def duplication(p: Point, label: int) -> Tokens:
    """n tokens, each r0 or r1 times; the first has key 2/n and carries 2, the others have key 1/n and carry 1."""
    n, times = int(p["n"]), int(p["r1"] if label else p["r0"])
    numbers = [Fraction(2 if token == 0 else 1) for token in range(n) for _ in range(times)]
    return Tokens((tuple(x / n for x in numbers),), tuple((x,) for x in numbers), in_log_n=False)


def parity(p: Point, label: int) -> Tokens:
    """All words of w bits; a logit is scale times the bits that agree with the word 0; D1 follows the parity."""
    bits = int(p["n"]).bit_length() - 1
    words = list(itertools.product((0, 1), repeat=bits))
    logits = tuple(p["scale"] * sum(bit == 0 for bit in word) for word in words)
    values = tuple((p["b"] + label * (p["a"] if sum(word) % 2 == 0 else -p["a"]),) for word in words)
    return Tokens((logits,), values)


def one_token(p: Point, label: int, logit: Fraction, others: Fraction, in_log_n: bool) -> Tokens:
    """One token carries a0 or a1, the others carry 0."""
    n = int(p["n"])
    values = ((p["a1"] if label else p["a0"],), *[(Fraction(0),)] * (n - 1))
    return Tokens(((logit, *[others] * (n - 1)),), values, in_log_n)


def dispersion(p: Point, label: int) -> Tokens:
    """The logits 1+gap and 1 are plain numbers."""
    return one_token(p, label, 1 + p["gap"], Fraction(1), in_log_n=False)


def critical(p: Point, label: int) -> Tokens:
    """Inner products 1 and rho, times gamma log n."""
    return one_token(p, label, p["gamma"], p["gamma"] * p["rho"], in_log_n=True)


def averaging(p: Point, label: int) -> Tokens:
    """The first q tokens are queried; they carry 1 in D1, and the q tokens after them in D0."""
    n, q = int(p["n"]), int(p["q"])
    ones = range(q) if label else range(q, 2 * q)
    logits = tuple(1 + p["gap"] if token < q else Fraction(1) for token in range(n))
    return Tokens((logits,), tuple((Fraction(int(token in ones)),) for token in range(n)))


def location(p: Point, label: int) -> Tokens:
    """The matrix of `spike`, in units of sqrt(log n), with the logit 1+gap for its first token and 1 for the others."""
    n, d = int(p["n"]), int(p["d"])
    values = []
    for token in range(n):
        spike = (p["a1"] if label else p["a0"]) if token == 0 else Fraction(0)
        inside = [p["b"] if token * (d - 2) // n == column else Fraction(0) for column in range(d - 2)]
        values.append((spike, *inside, p["c"]))
    return Tokens(((1 + p["gap"], *[Fraction(1)] * (n - 1)),), tuple(values))


CONSTRUCTIONS: dict[str, Callable[[Point, int], Tokens]] = {
    "injectivity": injectivity,
    "duplication": duplication,
    "parity": parity,
    "dispersion": dispersion,
    "critical": critical,
    "averaging": averaging,
    "routing": routing,
    "regression": regression,
    "recall": recall,
    "majority": majority,
    "spikes": spikes,
    "level": level,
}


# Mechanisms: the weights of one row from its logits. `options` are those that are typed after the colon.


def divide_by_sum(scores: Sequence[Number]) -> list[Number]:
    total = sum(scores)
    return [score / total for score in scores]


def softmax(logits: Sequence[Number], temperature: Number = 1) -> list[Number]:
    return divide_by_sum([mpmath.exp(exact(z) / exact(temperature)) for z in logits])


def hardmax(logits: Sequence[Number]) -> list[Number]:
    largest = max(logits)
    hits = [abs(z - largest) < TIE if not isinstance(z, Fraction) else z == largest for z in logits]
    return [Fraction(int(hit), sum(hits)) for hit in hits]


def top_k(logits: Sequence[Number], k: int) -> list[Number]:
    least = sorted(logits, reverse=True)[min(k, len(logits)) - 1]
    kept = [exact(z - least) > -TIE for z in logits]
    return divide_by_sum(
        [mpmath.exp(exact(z)) if keep else mpmath.mpf(0) for z, keep in zip(logits, kept, strict=True)]
    )


def sparsemax(logits: Sequence[Number]) -> list[Number]:
    """The threshold is found by trying every size of the support."""
    ordered = sorted(logits, reverse=True)
    for size in range(len(ordered), 0, -1):
        threshold = (sum(ordered[:size]) - 1) / size
        if exact(ordered[size - 1]) > exact(threshold):
            return [max(z - threshold, threshold * 0) for z in logits]
    raise AssertionError("the largest logit alone is always a support")


def entmax(logits: Sequence[Number], alpha: Number) -> list[Number]:
    """The threshold is found by bisection: 200 halvings of an interval that holds it."""
    power = 1 / (exact(alpha) - 1)
    scores = [(exact(alpha) - 1) * exact(z) for z in logits]
    low, high = max(scores) - 1, max(scores)
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(z - middle, 0) ** power for z in scores) > 1:
            low = middle
        else:
            high = middle
    return [max(z - low, 0) ** power for z in scores]


def taylor(z: Number, order: int) -> Number:
    return sum(z**i / mpmath.factorial(i) for i in range(order + 1))


def attend(mechanism: str, logits: Sequence[Number]) -> list[Number]:
    """The weights that a mechanism, as it is typed, gives to tokens of these logits."""
    name, _, typed = mechanism.partition(":")
    options = {key: value for key, _, value in (part.partition("=") for part in typed.split(",") if part)}
    n = len(logits)
    numbers = [exact(z) for z in logits]
    zero = mpmath.mpf(0)
    if name == "softmax":
        return softmax(logits, Fraction(options.get("temperature", "1")))
    if name == "linear":
        return divide_by_sum(logits)
    if name == "identity-features" and options == {"normalised": "no"}:
        return list(logits)
    if name == "power":
        return divide_by_sum([z ** int(options["beta"]) for z in logits])
    if name == "taylor":
        return divide_by_sum([taylor(z, int(options["order"])) for z in numbers])
    if name == "relu":
        return [max(z, zero) / n for z in numbers]
    if name == "squared-relu":
        return [max(z, zero) ** 2 / n for z in numbers]
    if name == "sigmoid":
        return [1 / (1 + mpmath.exp(-(z - mpmath.log(n)))) for z in numbers]
    if name == "softmax-sink":
        scores = [mpmath.exp(z) for z in numbers]
        return [score / (mpmath.exp(mpmath.mpf(options["sink"])) + sum(scores)) for score in scores]
    if name == "softpick":
        scores = [mpmath.exp(z) - 1 for z in numbers]
        return [max(score, zero) / sum(abs(other) for other in scores) for score in scores]
    if name == "logn-softmax":
        return softmax([z * mpmath.mpf(options.get("scale", "1")) * mpmath.log(n) for z in numbers])
    if name == "hardmax":
        return hardmax(logits)
    if name == "topk":
        return top_k(logits, int(options["k"]))
    if name == "sparsemax":
        return sparsemax(logits)
    if name == "entmax":
        return entmax(logits, Fraction(options.get("alpha", "1.5")))
    raise ValueError(f"{mechanism} is not written down here")


FREE_OF_SCALE = ("linear", "power", "hardmax")
"""A common factor of all logits changes nothing, so log n is left out and fractions stay fractions."""


def rows(mechanism: str, tokens: Tokens, seen: Callable[[int], bool] | None = None) -> list[list[Number]]:
    """Return one weighted sum of values for each row that is asked; `seen` hides tokens by their place."""
    log_n = mpmath.log(tokens.n)
    if not tokens.in_log_n or mechanism.partition(":")[0] in FREE_OF_SCALE:
        log_n = Fraction(1)
    places = [token for token in range(tokens.n) if seen is None or seen(token)]
    outputs = []
    for row in tokens.logits:
        scaled = [row[token] if log_n == 1 else exact(row[token]) * log_n for token in places]
        weights = attend(mechanism, scaled)
        output: list[Number] = [Fraction(0)] * len(tokens.values[0])
        for weight, token in zip(weights, places, strict=True):
            for feature, value in enumerate(tokens.values[token]):
                output[feature] += weight * (value if isinstance(weight, Fraction) else exact(value))
        outputs.append(output)
    return outputs


# The reader


@dataclass(frozen=True)
class Neuron:
    """One random sign vector: how often it fires, and how near it comes to its threshold."""

    p0: Fraction
    p1: Fraction
    q: Fraction
    margin: Number
    largest: Number
    """What the neuron with all signs + reads of D1, at most over the rows."""
    nearest: Number
    """The least distance from the threshold, over all readings that do not equal it."""

    def tells_apart(self, m: int) -> Fraction:
        return (1 - self.p0) ** m - self.q**m


def read(outputs: tuple[list[list[Number]], list[list[Number]]], threshold: Fraction) -> Neuron:
    """Enumerate all sign vectors on what attention returned for D0 and D1."""
    width = len(outputs[0][0])
    counts = [0, 0, 0]
    nearest: Number = mpmath.inf
    for signs in itertools.product((1, -1), repeat=width):
        fires = []
        for label in (0, 1):
            fired = False
            for output in outputs[label]:
                excess = sum(sign * number for sign, number in zip(signs, output, strict=True)) - (
                    threshold if all(isinstance(number, Fraction) for number in output) else exact(threshold)
                )
                if excess != 0:
                    nearest = min(nearest, abs(exact(excess)))
                fired = fired or (excess > 0 if isinstance(excess, Fraction) else excess > TIE)
            fires.append(fired)
        counts[0] += fires[0]
        counts[1] += fires[1]
        counts[2] += not any(fires)
    plus = [max(exact(sum(output)) for output in outputs[label]) for label in (0, 1)]
    p0, p1, q = (Fraction(count, 2**width) for count in counts)
    return Neuron(p0, p1, q, plus[1] - plus[0], plus[1], nearest)


def neuron(construction: str, mechanism: str, p: Point, threshold: Fraction) -> Neuron:
    tokens = [{**CONSTRUCTIONS, "location": location}[construction](p, label) for label in (0, 1)]
    return read((rows(mechanism, tokens[0]), rows(mechanism, tokens[1])), threshold)
