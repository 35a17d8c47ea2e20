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

from separatrix.checker.certificate import MECHANISMS, PARAMETERS
from separatrix.checker.document import MOST_DIGITS, Malformed, exact, fields, integer, word
from separatrix.checker.statement import mechanism_words, scoring, words

BLOCKS = ("spike", "cross", "location")
"""Constructions of d-2 equal blocks; tau, if null, is c + 0.1."""
NO_NUMBER = ("form",)


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

    def differences(self, end: dict[str, Any]) -> list[str]:
        """Return the fields in which a parsed end differs from the certificate's point."""
        parameters = end["parameters"]
        faults = [] if end["construction"] == self.construction else ["construction"]
        settings = {**self.mechanism, **_only(end["mechanism"], self.parameter)}
        if not _same_json(settings, end["mechanism"]):
            faults.append("mechanism")
        if faults:
            return faults
        for name, value in self.parameters.items():
            if name == "tau" and value is None:
                holds = exact(parameters["tau"], "tau") == exact(parameters["c"], "c") + Fraction(1, 10)
            elif name == "n" and self.construction in BLOCKS:
                holds = parameters["n"] == nearest_multiple(value, parameters["d"] - 2)
            else:
                holds = _same_json(parameters[name], value)
            if not holds:
                faults.append(name)
        return faults

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
        names = [self.parameter]
        if self.parameter == "c" and self.parameters["tau"] is None:
            names.append("tau")
        if self.parameter == "d":
            names.append("n")
        return {name: values[name] for name in names}


def read_question(body: dict[str, Any]) -> CertifiedQuestion:
    """Parse the shared part of a boundary certificate; the ends, which repeat its values, validate them."""
    construction = word(body["construction"], "construction", PARAMETERS)
    if not isinstance(body["mechanism"], dict) or "name" not in body["mechanism"]:
        raise Malformed("mechanism is not an object with a name")
    name = word(body["mechanism"]["name"], "mechanism name", MECHANISMS)
    mechanism_names, parameter_names = MECHANISMS[name], PARAMETERS[construction]
    numbers = [entry for entry in (*parameter_names, *mechanism_names) if entry not in NO_NUMBER]
    parameter = word(body["parameter"], "parameter", numbers)
    mechanism = fields(body["mechanism"], "mechanism", ["name", *_without(mechanism_names, parameter)])
    parameters = fields(body["parameters"], "parameters", _without(parameter_names, parameter))
    if "n" in parameters:
        integer(parameters["n"], "n", 1)
    for key, value in (*mechanism.items(), *parameters.items()):
        may_lack = key == "digits" or (key == "tau" and construction in BLOCKS)
        if type(value) not in (int, str) and not (value is None and may_lack):
            raise Malformed(f"{key} is neither a whole number nor text")
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


def _without(names: Sequence[str], name: str) -> list[str]:
    return [entry for entry in names if entry != name]


def _only(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: values[name]} if name in values else {}


def _same_json(first: object, second: object) -> bool:
    """Whether two JSON values have the same text: 1, 1.0 and true do not."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
