"""What a boundary certificate is about: a construction and a mechanism of which one parameter moves.

Everything else stays as it is stated once for all ends, or follows by one of two rules, which are
computed here again: tau is c + 0.1 where none was given, and n is the multiple of d-2 nearest to
the n that was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from separatrix.checker.certificate import MECHANISMS, PARAMETERS
from separatrix.checker.document import MOST_DIGITS, Malformed, exact, fields, whole, word
from separatrix.checker.statement import mechanism_words, scoring, words

BLOCKS = ("spike", "cross")
"""Constructions of d-2 equal blocks, whose threshold is c + 0.1 unless it is given."""
NO_NUMBER = ("form",)


@dataclass(frozen=True)
class Question:
    """What all ends share, as the certificate spells it; `parameter` is in neither of the two objects."""

    construction: str
    mechanism: dict[str, Any]
    parameters: dict[str, Any]
    parameter: str

    def value(self, end: dict[str, Any]) -> Fraction:
        """The value of the moving parameter at an end that has been read."""
        found = {**end["mechanism"], **end["parameters"]}[self.parameter]
        return Fraction(found) if type(found) is int else exact(found, self.parameter, MOST_DIGITS)

    def differences(self, end: dict[str, Any]) -> list[str]:
        """In what an end that has been read is not the point that the certificate speaks of."""
        found, stated = end["parameters"], self.parameters
        faults = [] if end["construction"] == self.construction else ["construction"]
        settings = {**self.mechanism, **_only(end["mechanism"], self.parameter)}
        if not _alike(settings, end["mechanism"]):
            faults.append("mechanism")
        if faults:
            return faults
        for name in stated:
            if name == "tau" and stated["tau"] is None:
                holds = exact(found["tau"], "tau") == exact(found["c"], "c") + Fraction(1, 10)
            elif name == "n" and self.construction in BLOCKS:
                holds = found["n"] == nearest_multiple(stated["n"], found["d"] - 2)
            else:
                holds = _alike(found[name], stated[name])
            if not holds:
                faults.append(name)
        return faults

    def described(self, ends: Sequence[dict[str, Any]]) -> list[str]:
        """What is fixed at these ends, what follows by a rule, and what moves, in sentences."""
        first = {name: value for name, value in ends[0]["parameters"].items() if name != self.parameter}
        same = {name: v for name, v in first.items() if all(e["parameters"][name] == v for e in ends)}
        moving, *others = self.following(ends[0])
        moves = f"{moving} moves, and {others[0]} with it" if others else f"{moving} alone moves"
        said = [
            f"{mechanism_words(self.mechanism)} on {self.construction}, where {moves}.",
            f"Fixed at every end: {words(same)}.",
            scoring(self.mechanism),
        ]
        if "tau" in first and self.parameters["tau"] is None:
            said.append("tau is c + 0.1.")
        if "n" in first and (self.parameters["n"] != first["n"] or "n" not in same):
            said.append(f"n is the multiple of d-2 nearest to {self.parameters['n']}.")
        return said

    def following(self, end: dict[str, Any]) -> dict[str, Any]:
        """The moving parameter at an end, and what follows it."""
        values = {**end["mechanism"], **end["parameters"]}
        names = [self.parameter]
        if self.parameter == "c" and self.parameters["tau"] is None:
            names.append("tau")
        if self.parameter == "d":
            names.append("n")
        return {name: values[name] for name in names}


def read_question(body: dict[str, Any]) -> Question:
    """The shared part of a boundary certificate; its values are read with the ends, which repeat them."""
    construction = word(body["construction"], "construction", PARAMETERS)
    if not isinstance(body["mechanism"], dict) or "name" not in body["mechanism"]:
        raise Malformed("mechanism is not an object with a name")
    name = word(body["mechanism"]["name"], "mechanism name", MECHANISMS)
    own, others = MECHANISMS[name], PARAMETERS[construction]
    numbers = [each for each in (*others, *own) if each not in NO_NUMBER]
    parameter = word(body["parameter"], "parameter", numbers)
    mechanism = fields(body["mechanism"], "mechanism", ["name", *_without(own, parameter)])
    parameters = fields(body["parameters"], "parameters", _without(others, parameter))
    if "n" in parameters:
        whole(parameters["n"], "n", 1)
    for given, value in (*mechanism.items(), *parameters.items()):
        follows = given == "tau" and value is None and construction in BLOCKS
        if type(value) not in (int, str) and not follows:
            raise Malformed(f"{given} is neither a whole number nor text")
    return Question(construction, mechanism, parameters, parameter)


def nearest_multiple(n: int, step: int) -> int:
    """The multiple of `step` nearest to n, the greater of two; of 3 or more, unless n is a multiple.

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
    return [each for each in names if each != name]


def _only(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: values[name]} if name in values else {}


def _alike(one: object, other: object) -> bool:
    """Whether two values of JSON are written the same: 1, 1.0 and true are not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
