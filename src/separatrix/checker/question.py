"""The subject of a boundary certificate: a construction and a mechanism with one moving parameter.

Everything else is stated once for all ends, or follows by one of two rules that are recomputed here: tau is
c + 0.1 if none was given, and n is the multiple of d-2 nearest to the requested n.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from separatrix.checker.certificate import MECHANISMS, PARAMETERS, mechanism_name
from separatrix.checker.document import MOST_DIGITS, exact, fields, integer, require, word
from separatrix.checker.statement import mechanism_words, scoring, words

BLOCKS = ("spike", "cross", "location")
"""Constructions of d-2 equal blocks; tau, if null, is c + 0.1."""


@dataclass(frozen=True)
class CertifiedQuestion:
    """The part that all ends share, as written; `parameter` is in neither of the two objects."""

    construction: str
    mechanism: dict[str, Any]
    parameters: dict[str, Any]
    parameter: str

    def value(self, end: dict[str, Any]) -> Fraction:
        """Return the value of the moving parameter at a parsed end."""
        entry = {**end["mechanism"], **end["parameters"]}[self.parameter]
        return Fraction(entry) if type(entry) is int else exact(entry, self.parameter, MOST_DIGITS)

    def require_same(self, end: dict[str, Any], place: str) -> None:
        """Require a parsed end to equal the certificate's point except for the moving parameter."""
        parameters, fault = end["parameters"], "is not what the certificate states for all ends"
        settings = {name: value for name, value in end["mechanism"].items() if name != self.parameter}
        require(end["construction"] == self.construction, f"{place}construction {fault}")
        require(_same_json(settings, self.mechanism), f"{place}mechanism {fault}")
        for name, value in self.parameters.items():
            if name == "tau" and value is None:
                holds = exact(parameters["tau"], "tau") == exact(parameters["c"], "c") + Fraction(1, 10)
            elif name == "n" and self.construction in BLOCKS:
                holds = parameters["n"] == nearest_multiple(value, parameters["d"] - 2)
            else:
                holds = _same_json(parameters[name], value)
            require(holds, f"{place}{name} {fault}")

    def describe(self, ends: Sequence[dict[str, Any]]) -> list[str]:
        """Describe the fixed parameters, those that follow by a rule, and the moving one."""
        first = {name: value for name, value in ends[0]["parameters"].items() if name != self.parameter}
        fixed_values = {name: v for name, v in first.items() if all(e["parameters"][name] == v for e in ends)}
        moving, *followers = self.following(ends[0])
        moves = f"{moving} moves, and {followers[0]} with it" if followers else f"{moving} alone moves"
        sentences = [
            f"{mechanism_words(self.mechanism)} on {self.construction}, where {moves}.",
            f"Fixed at every end: {words(fixed_values)}.",
            scoring(self.mechanism),
        ]
        if "tau" in first and self.parameters["tau"] is None:
            sentences.append("tau is c + 0.1.")
        if "n" in first and (self.parameters["n"] != first["n"] or "n" not in fixed_values):
            sentences.append(f"n is the multiple of d-2 nearest to {self.parameters['n']}.")
        return sentences

    def following(self, end: dict[str, Any]) -> dict[str, Any]:
        """Return the moving parameter at an end, and the parameters that follow it."""
        values = {**end["mechanism"], **end["parameters"]}
        followers = ["tau"] if self.parameter == "c" and self.parameters["tau"] is None else []
        followers += ["n"] if self.parameter == "d" else []
        return {name: values[name] for name in (self.parameter, *followers)}


def read_question(body: dict[str, Any]) -> CertifiedQuestion:
    """Parse the shared part of a boundary certificate; the ends, which repeat its values, validate them."""
    construction = word(body["construction"], "construction", PARAMETERS)
    settings, names = ("name", *MECHANISMS[mechanism_name(body["mechanism"])]), PARAMETERS[construction]
    numbers = [name for name in (*names, *settings) if name not in ("form", "name")]
    parameter = word(body["parameter"], "parameter", numbers)
    mechanism = fields(body["mechanism"], "mechanism", [name for name in settings if name != parameter])
    parameters = fields(body["parameters"], "parameters", [name for name in names if name != parameter])
    if "n" in parameters:
        integer(parameters["n"], "n", 1)
    for key, value in (*mechanism.items(), *parameters.items()):
        is_absent = value is None and (key == "digits" or (key == "tau" and construction in BLOCKS))
        require(type(value) in (int, str) or is_absent, f"{key} is neither a whole number nor text")
    return CertifiedQuestion(construction, mechanism, parameters, parameter)


def nearest_multiple(n: int, step: int) -> int:
    """Return the multiple of `step` nearest to n, rounding up on ties; at least 3 unless n is a multiple.

    >>> [nearest_multiple(n, 100) for n in (1049, 1050, 1, 300)], nearest_multiple(1, 2)
    ([1000, 1100, 100, 300], 4)
    """
    if n % step == 0:
        return n
    below = n - n % step
    near = below if n - below < step - (n - below) else below + step
    while near < 3:
        near += step
    return near


def _same_json(first: object, second: object) -> bool:
    """Whether two JSON values have the same text: 1, 1.0 and true do not."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
