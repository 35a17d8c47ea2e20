"""Proofs for every n by direct computation: independent of the program and of its checker.

Counts are compared by the sum of scores times (value - tau) over the groups of tokens, with fractions where a score is
rational and 400 digits otherwise. Steps are located by bisection in each range of t on which N/n is monotone; the
state at t = 10^120 stands for all larger t, which the points in PROOF_POINTS reach much earlier.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import comb
from typing import Any

import mpmath

Json = Any
Signs = tuple[int, int, int]
FAR = 10**120
DIGITS = 400
TRIPLES: list[Signs] = list(product((1, -1), (1, -1), (1, -1)))

BASE = {"d": 6, "m": 5, "a0": "0.05", "a1": "0.7", "b": "0.55", "c": "0.3", "tau": "0.4", "form": "ones"}
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


class Row:
    """One kind of row under one sign triple."""

    def __init__(self, mechanism: Json, parameters: Json, label: int, signs: Signs, row: str) -> None:
        a0, a1, b, c, tau = (Fraction(parameters[name]) for name in ("a0", "a1", "b", "c", "tau"))
        a, (y_1, y_k, y_d) = (a0, a1)[label], signs
        self.d, self.b, self.c, self.tau, self.y_d, self.y_k = parameters["d"], b, c, tau, y_d, y_k
        query, self.spike = a + b + c if row == "spike" else b + c, a * y_1 + b * y_k + c * y_d - tau
        self.temperature = Fraction(mechanism.get("temperature", 1))
        self.power = None if mechanism["name"] == "softmax" else Fraction(mechanism.get("beta", 1))
        self.logits = query * (a + b + c), query * (b + c)

    def ratio(self, n: int) -> Any:
        """Return the spike's score over an ordinary one."""
        top, bottom = self.logits
        if self.power is not None:
            base = top / bottom
            if self.power.denominator == 1:
                return base ** int(self.power)
            exponent = mpmath.mpf(self.power.numerator) / self.power.denominator
            return (mpmath.mpf(base.numerator) / base.denominator) ** exponent
        exponent = (top - bottom) / self.temperature
        if exponent.denominator == 1:
            return Fraction(n) ** int(exponent)
        return mpmath.mpf(n) ** (mpmath.mpf(exponent.numerator) / exponent.denominator)

    def fires(self, plus: int, n: int) -> bool:
        """Whether the pre-activation exceeds tau."""
        size = n // (self.d - 2)
        mate = self.b * self.y_k + self.c * self.y_d - self.tau
        others = self.b * (2 * plus - (self.d - 3)) + (self.d - 3) * (self.c * self.y_d - self.tau)
        rest = (size - 1) * mate + size * others
        return self._is_positive(self.spike, self.ratio(n), rest)

    def least(self, n: int) -> int:
        """Return the least firing count."""
        low, high = 0, self.d - 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fires(middle, n) else (middle + 1, high)
        return low

    def slope(self, n: int) -> int:
        """Return the sign of the derivative of N/n."""
        mate = self.b * self.y_k + self.c * self.y_d - self.tau
        top, bottom = self.logits
        exponent = (top - bottom) / self.temperature if self.power is None else Fraction(0)
        ratio, factor = self.ratio(n), self.spike * (exponent - 1)
        return self._is_positive(factor, ratio, mate) - self._is_positive(-factor, ratio, -mate)

    @staticmethod
    def _is_positive(factor: Fraction, ratio: Any, rest: Fraction) -> bool:
        if isinstance(ratio, Fraction):
            return factor * ratio + rest > 0
        if factor == 0:
            return rest > 0
        limit = mpmath.mpf(-rest.numerator * factor.denominator) / (rest.denominator * abs(factor.numerator))
        signed = ratio if factor > 0 else -ratio
        # A tie at a perfect power leaves only the rounding error.
        return bool(signed - limit > abs(ratio) * mpmath.mpf(10) ** (-DIGITS // 2))


def make_proof(mechanism: Json, parameters: Json, first_n: int, delta: str, requested: str | None = None) -> Json:
    """Return the proof at a point."""
    with mpmath.workdps(DIGITS):
        return _make_proof(mechanism, parameters, first_n, delta, requested)


def _make_proof(mechanism: Json, parameters: Json, first_n: int, delta: str, requested: str | None) -> Json:
    unit = parameters["d"] - 2
    first_t = first_n // unit
    lines = []
    for label, signs, row in product(
        (0, 1), TRIPLES, ("spike", "other") if mechanism["name"] == "softmax" else ("every",)
    ):
        state = Row(mechanism, parameters, label, signs, row)
        turn, steps = _steps(state, unit, first_t)
        lines.append({"label": label, "signs": list(signs), "row": row, "turn": turn, "steps": steps})
    table = _table(parameters["d"], lines)
    verdicts = [_verdict(*entry[1:], parameters["m"], Fraction(delta)) for entry in table]
    positions = [unit * entry[0] for entry in table]
    final = max((i for i, word in enumerate(verdicts) if word != verdicts[-1]), default=-1) + 1
    expected = requested or verdicts[0]
    failures = [n for n, word in zip(positions, verdicts, strict=True) if word != expected]
    body = {
        "format": "separatrix proof",
        "version": 1,
        "construction": "spike",
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


def _steps(state: Row, unit: int, first_t: int) -> tuple[int | None, list[list[int]]]:
    """Return the turn and the steps of one row."""
    turn, start, end = None, state.slope(unit * first_t), state.slope(unit * FAR)
    if start * end < 0:
        turn = _last(first_t, FAR, lambda t: state.slope(unit * t) == start)
    pieces = [(first_t, FAR)] if turn is None else [(first_t, turn), (turn + 1, FAR)]
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
    return turn, steps


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
        least: dict[tuple[int, Signs], int] = {}
        for line in lines:
            key = line["label"], tuple(line["signs"])
            now = next(value for first, value in reversed(line["steps"]) if first <= t)
            least[key] = min(now, least.get(key, d))
        p0 = p1 = only = Fraction(0)
        for signs, plus in product(TRIPLES, range(d - 2)):
            weight = Fraction(comb(d - 3, plus), 2**d)
            in_d0, in_d1 = plus >= least[0, signs], plus >= least[1, signs]
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
    for line, true_line in zip(stated["lines"], _in_order(truth, stated), strict=True):
        if line["turn"] is not None and not _has_only_turn(line["steps"], line["turn"]):
            return False
        line["turn"] = None
        true_line["turn"] = None
    truth["lines"] = _in_order(truth, stated)
    return bool(sealed(truth) == sealed(stated))


def _in_order(truth: Json, stated: Json) -> list[Json]:
    by_key = {(line["label"], tuple(line["signs"]), line["row"]): line for line in truth["lines"]}
    return [by_key[line["label"], tuple(line["signs"]), line["row"]] for line in stated["lines"]]


def _has_only_turn(steps: list[list[int]], turn: int) -> bool:
    """Whether the least counts are monotone up to the turn and after it."""
    last_before = [value for t, value in steps if t <= turn]
    after = [value for t, value in steps if t > turn]
    if not any(t == turn + 1 for t, _ in steps):
        after = [last_before[-1], *after]
    return all(_is_monotone(values) for values in (last_before, after))


def _is_monotone(values: list[int]) -> bool:
    signs: Iterator[bool] = (first < second for first, second in pairwise(values))
    return len({*signs}) <= 1
