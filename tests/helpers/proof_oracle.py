"""Proofs for every n by direct computation: independent of the program and of its checker.

Counts are compared by the sum of scores times (value - tau) over the groups of tokens, with fractions where a score is
rational and 400 digits otherwise. Steps are located by bisection in each range of t on which N/n is monotone; the
state at t = 10^120 stands for all larger t, which the points in PROOF_POINTS reach much earlier.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise, product
from math import comb, factorial
from typing import Any

import mpmath

Json = Any
Signs = tuple[int, int, int]
FAR = 10**120
DIGITS = 400
TRIPLES: list[Signs] = list(product((1, -1), (1, -1), (1, -1)))

BASE = {"d": 6, "m": 5, "a0": "0.05", "a1": "0.7", "b": "0.55", "c": "0.3", "tau": "0.4", "form": "ones"}
CROSS = {**{name: value for name, value in BASE.items() if name != "form"}, "r_Q": "1.5"}
IDENTITY = {**BASE, "form": "identity", "d": 5, "m": 3}
PROOF_POINTS: dict[str, tuple[Json, dict[str, Any], int]] = {
    "softmax": ({"name": "softmax", "temperature": "1"}, BASE, 4),
    "linear": ({"name": "linear"}, BASE, 4),
    "power": ({"name": "power", "beta": "3"}, BASE, 8),
    "no spike in D0": ({"name": "softmax", "temperature": "1"}, {**BASE, "a0": "0", "d": 5}, 3),
    "no spike in D0, linear": (
        {"name": "linear"},
        {**BASE, "a0": "0", "b": "0.1", "c": "0.2", "a1": "1", "tau": "0.3", "d": 7},
        110,
    ),
    "s1 = 1": (
        {"name": "softmax", "temperature": "1"},
        {**BASE, "a1": "0.8", "b": "0.25", "c": "0.2", "tau": "0.3"},
        4,
    ),
    "s1 = 2": ({"name": "softmax", "temperature": "0.5"}, {**BASE, "a1": "0.8", "b": "0.25", "c": "0.2"}, 4),
    "ties": ({"name": "linear"}, {**BASE, "b": "0.5", "c": "0.25", "tau": "0.25", "a1": "0.75", "a0": "0"}, 4),
    "hot": ({"name": "softmax", "temperature": "3"}, {**BASE, "a1": "1.2", "b": "0.2", "c": "0.1", "tau": "0.2"}, 40),
    "cold": ({"name": "softmax", "temperature": "0.25"}, {**BASE, "d": 4, "m": 1}, 6),
    "saturated": ({"name": "softmax", "temperature": "1"}, {**BASE, "b": "0.9", "tau": "0.01", "m": 30}, 4),
    "readme": (
        {"name": "softmax", "temperature": "1"},
        {"d": 102, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "tau": "0.2", "form": "ones"},
        1000,
    ),
    "cross": ({"name": "softmax", "temperature": "1"}, CROSS, 4),
    "cross, linear": ({"name": "linear"}, {**CROSS, "a0": "0", "b": "0.5"}, 4),
    "cross, taylor": ({"name": "taylor", "order": 3}, {**CROSS, "d": 5, "a1": "1.5", "r_Q": "3"}, 3),
    "identity": ({"name": "softmax", "temperature": "0.5"}, {**IDENTITY, "a1": "0.9"}, 3),
    "identity, ties": (
        {"name": "softmax", "temperature": "1"},
        {**IDENTITY, "a0": "0", "a1": "1", "b": "0.5", "c": "0.25", "tau": "0.25"},
        6,
    ),
    "identity, linear": ({"name": "linear"}, {**IDENTITY, "c": "0.2", "tau": "0.25"}, 3),
    "identity, power": ({"name": "power", "beta": "2"}, {**IDENTITY, "d": 6}, 12),
    "identity, taylor": ({"name": "taylor", "order": 2}, {**IDENTITY, "a1": "1.5"}, 3),
    "taylor": ({"name": "taylor", "order": 3}, {**BASE, "a1": "1.5", "d": 5}, 3),
    "readme, linear": (
        {"name": "linear"},
        {"d": 102, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "tau": "0.2", "form": "ones"},
        1000,
    ),
}


def sealed(document: Json) -> Json:
    """Return the document with the hash of its other fields."""
    body = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return {**body, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def proof(name: str, delta: str = "0.01", requested: str | None = None) -> Json:
    """Return a new copy of the proof at a point of PROOF_POINTS."""
    return copy.deepcopy(_cached_proof(name, delta, requested))


@cache
def _cached_proof(name: str, delta: str, requested: str | None) -> Json:
    mechanism, parameters, first_n = PROOF_POINTS[name]
    return make_proof(mechanism, parameters, first_n, delta, requested)


Sum = dict[tuple[Fraction, int], Fraction]
"""The coefficients of n^e (log n)^j by (e, j)."""


class Row:
    """One kind of row under one sign triple, from the vectors of its tokens."""

    def __init__(
        self, mechanism: Json, parameters: Json, label: int, signs: Signs, row: str, own_sign: int = 0
    ) -> None:
        a, b, c, tau = (Fraction(parameters[name]) for name in (f"a{label}", "b", "c", "tau"))
        self.mechanism, self.d, y_1, (y_k, y_d) = mechanism, parameters["d"], signs[0], signs[1:]
        # Columns: the spike, its block, another block, the row's own block, c.
        vectors = {"spike": [a, b, 0, 0, c], "mate": [0, b, 0, 0, c], "own": [0, 0, 0, b, c], "block": [0, 0, b, 0, c]}
        query = {"spike": "spike", "other": "own"}.get(row, "mate")

        def logit(key: str) -> Fraction:
            if "r_Q" in parameters:
                return Fraction(parameters["r_Q"]) * sum(vectors[key])
            if parameters["form"] == "ones":
                return sum(vectors[query]) * Fraction(sum(vectors[key]))
            return Fraction(sum(x * y for x, y in zip(vectors[query], vectors[key], strict=True)))

        self.logits = {key: logit(key) for key in vectors}
        common = c * y_d - tau
        self.spike, self.mate, self.own = a * y_1 + b * y_k + common, b * y_k + common, b * own_sign + common
        self.common, self.b, self.own_sign = common, b, own_sign

    def score(self, key: str) -> Sum:
        """Return a score over a unit of the row."""
        logit, ordinary, name = self.logits[key], self.logits["block"], self.mechanism["name"]
        if name == "softmax":
            return {((logit - ordinary) / Fraction(self.mechanism["temperature"]), 0): Fraction(1)}
        if name == "taylor":
            return {(Fraction(0), i): logit**i / factorial(i) for i in range(self.mechanism["order"] + 1)}
        return {(Fraction(0), 0): (logit / ordinary) ** int(self.mechanism.get("beta", 1))}

    def fires(self, plus: int, n: int) -> bool:
        """Whether the pre-activation exceeds tau: the sum over all tokens of score times (value - tau)."""
        size, blocks = n // (self.d - 2), self.d - 3
        kinds = [("spike", 1, self.spike), ("mate", size - 1, self.mate)]
        if self.own_sign:
            kinds.append(("own", size, self.own))
            plus, blocks = plus - (self.own_sign > 0), blocks - 1
        kinds += [("block", size * plus, self.b + self.common), ("block", size * (blocks - plus), self.common - self.b)]
        return _sign_at([_scaled(self.score(key), count * value) for key, count, value in kinds], n) > 0

    def least(self, n: int) -> int:
        """Return the least firing count."""
        low, high = 0, self.d - 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fires(middle, n) else (middle + 1, high)
        return low

    def levels(self) -> list[Sum]:
        """Return the derivatives whose signs decide where the pre-activation is monotone."""
        top, bottom, per_n = defaultdict(Fraction), self.score("block"), Fraction(self.d - 2)
        for key, exponent, value in (
            ("spike", -1, per_n * self.spike),
            ("mate", -1, -per_n * self.mate),
            ("mate", 0, self.mate),
            ("own", 0, self.own if self.own_sign else Fraction(0)),
        ):
            for (e, j), factor in self.score(key).items():
                top[e + exponent, j] += factor * value
        level: Sum = defaultdict(Fraction)
        for ((e, i), x), ((f, j), y) in product(top.items(), bottom.items()):
            level[e + f, i + j] += x * y * (e - f)
            level[e + f, i + j - 1] += x * y * (i - j)
        levels = []
        while level := {power: factor for power, factor in level.items() if factor}:
            levels.append(level)
            least, following = min(e for e, _ in level), defaultdict(Fraction)
            for (e, j), factor in level.items():
                following[e - least, j] += (e - least) * factor
                following[e - least, j - 1] += j * factor
            level = following
        return levels


def _scaled(terms: Sum, factor: Fraction) -> Sum:
    return {power: factor * value for power, value in terms.items()}


def _sign_at(sums: list[Sum], n: int) -> int:
    """Return the sign of a sum of sums at n; a tie leaves only the rounding error."""
    log_n = mpmath.log(n)
    values = [
        mpmath.mpf(factor.numerator) / factor.denominator * _power(n, e) * log_n**j
        for terms in sums
        for (e, j), factor in terms.items()
        if factor
    ]
    total, largest = mpmath.fsum(values), max(map(abs, values), default=mpmath.mpf(0))
    return 0 if abs(total) <= largest * mpmath.mpf(10) ** (-DIGITS // 2) else int(mpmath.sign(total))


@lru_cache(maxsize=4096)
def _power(n: int, exponent: Fraction) -> Any:
    return mpmath.mpf(n) ** (mpmath.mpf(exponent.numerator) / exponent.denominator)


def make_proof(mechanism: Json, parameters: Json, first_n: int, delta: str, requested: str | None = None) -> Json:
    """Return the proof at a point."""
    with mpmath.workdps(DIGITS):
        return _make_proof(mechanism, parameters, first_n, delta, requested)


def _make_proof(mechanism: Json, parameters: Json, first_n: int, delta: str, requested: str | None) -> Json:
    unit = parameters["d"] - 2
    first_t = first_n // unit
    construction = "cross" if "r_Q" in parameters else "spike"
    rows = [("query", 0)] if construction == "cross" else [("spike", 0), ("rest", 0)]
    if parameters.get("form") == "identity":
        rows = [("spike", 0), ("mate", 0), ("other", 1), ("other", -1)]
    lines = []
    for label, signs, (row, own_sign) in product((0, 1), TRIPLES, rows):
        state = Row(mechanism, parameters, label, signs, row, own_sign)
        turns, steps = _steps(state, unit, max(first_t, 2) if row == "mate" else first_t)
        place = {"label": label, "signs": list(signs), "row": row, "own_sign": own_sign}
        lines.append({**place, "turns": turns, "steps": steps})
    table = _table(parameters["d"], lines)
    verdicts = [_verdict(*entry[1:], parameters["m"], Fraction(delta)) for entry in table]
    positions = [unit * entry[0] for entry in table]
    final = max((i for i, word in enumerate(verdicts) if word != verdicts[-1]), default=-1) + 1
    expected = requested or verdicts[0]
    failures = [n for n, word in zip(positions, verdicts, strict=True) if word != expected]
    body = {
        "format": "separatrix proof",
        "version": 1,
        "construction": construction,
        "mechanism": mechanism,
        "parameters": parameters,
        "from": first_n,
        "delta": delta,
        "lines": lines,
        "table": [[t, *map(str, fractions)] for t, *fractions in table],
        "verdict": verdicts[0] if len(set(verdicts)) == 1 else None,
        "eventually": {"verdict": verdicts[-1], "from": positions[final]},
        "counterexample": failures[0] if failures else None,
        "requested": requested,
    }
    return sealed(body)


def _steps(state: Row, unit: int, first_t: int) -> tuple[list[int], list[list[int]]]:
    """Return the turns and the steps of one row."""
    pieces = [(first_t, FAR)]
    for level in reversed(state.levels()):
        cut: list[tuple[int, int]] = []
        for first, last in pieces:
            start, end = _sign_at([level], unit * first), _sign_at([level], unit * last)
            if start * end < 0:
                turn = _last(first, last, lambda t, f=level, s=start: _sign_at([f], unit * t) == s)  # type: ignore[misc]
                cut.append((first, turn))
                first = turn + 1
            cut.append((first, last))
        pieces = cut
    steps: list[list[int]] = []
    for first, last in pieces:
        t, final = first, state.least(unit * last)
        while True:
            least = state.least(unit * t)
            if not steps or steps[-1][1] != least:
                steps.append([t, least])
            if least == final:
                break
            t = _last(t, last, lambda u, least=least: state.least(unit * u) == least) + 1  # type: ignore[misc]
    return [last for _, last in pieces[:-1]], steps


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the last t at which a property holds that `low` has, `high` lacks, and no t regains."""
    while high > low + 1:
        # Geometric steps first: the range spans hundreds of digits.
        middle = 1 << (low.bit_length() + high.bit_length()) // 2
        middle = middle if low < middle < high and high > 4 * low else (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _table(d: int, lines: list[Json]) -> list[tuple[int, Fraction, Fraction, Fraction]]:
    table: list[tuple[int, Fraction, Fraction, Fraction]] = []
    for t in sorted({t for line in lines for t, _ in line["steps"]}):
        fires: dict[tuple[int, Signs], set[int]] = defaultdict(set)
        for line in lines:
            # A row whose own block has the sign + exists if one of the blocks has it; likewise for the sign -.
            first, last = int(line["own_sign"] > 0), d - 3 - (line["own_sign"] < 0)
            now = [value for start, value in line["steps"] if start <= t]
            if now:
                fires[line["label"], tuple(line["signs"])] |= set(range(max(first, now[-1]), last + 1))
        p0 = p1 = only = Fraction(0)
        for signs, plus in product(TRIPLES, range(d - 2)):
            weight = Fraction(comb(d - 3, plus), 2**d)
            in_d0, in_d1 = plus in fires[0, signs], plus in fires[1, signs]
            p0, p1, only = p0 + weight * in_d0, p1 + weight * in_d1, only + weight * (in_d1 and not in_d0)
        if not table or table[-1][1:] != (p0, p1, only):
            table.append((t, p0, p1, only))
    return table


def _verdict(p0: Fraction, p1: Fraction, only: Fraction, m: int, delta: Fraction) -> str:
    distinguish = (1 - p0) ** m - (1 - p0 - only) ** m
    if distinguish >= 1 - delta:
        return "distinguishes"
    if distinguish > delta:
        return "partial"
    return "saturated" if 1 - (1 - p1) ** m - distinguish >= Fraction(1, 2) else "blind"


def is_true(document: Json) -> bool:
    """Whether every statement of a proof is true, whatever turns it names."""
    names = ("mechanism", "parameters", "from", "delta", "requested")
    truth = make_proof(*(document[name] for name in names))
    stated = copy.deepcopy(document)
    truth["lines"] = _in_order(truth, stated)
    for line, true_line in zip(stated["lines"], truth["lines"], strict=True):
        if not _has_only_turns(line["steps"], line["turns"]):
            return False
        line["turns"] = true_line["turns"] = []
    return bool(sealed(truth) == sealed(stated))


def _in_order(truth: Json, stated: Json) -> list[Json]:
    by_key = {_key(line): line for line in truth["lines"]}
    return [by_key[_key(line)] for line in stated["lines"]]


def _key(line: Json) -> tuple[int, Signs, str, int]:
    return line["label"], tuple(line["signs"]), line["row"], line["own_sign"]


def _has_only_turns(steps: list[list[int]], turns: list[int]) -> bool:
    """Whether the least counts are monotone between turns."""
    starts = [steps[0][0], *(turn + 1 for turn in turns)]
    for first, last in zip(starts, [*turns, steps[-1][0]], strict=True):
        before = [value for t, value in steps if t <= first][-1]
        if not _is_monotone([before, *(value for t, value in steps if first < t <= last)]):
            return False
    return True


def _is_monotone(values: list[int]) -> bool:
    signs: Iterator[bool] = (first < second for first, second in pairwise(values))
    return len({*signs}) <= 1
