"""Sentences that state what a certificate proves and what it does not claim."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from separatrix.checker.certificate import DEFINITIONS
from separatrix.checker.probability import Enclosure, FiringProbabilities
from separatrix.checker.tokens import LEMMAS

P = "P(tells apart)"

WEIGHTS = {
    "softmax": "exp(score / temperature)",
    "linear": "its score",
    "power": "its score to the power beta",
    "taylor": "the sum of score^i / i! for i from 0 to order",
}
SCORES = {"ones": "products of row sums", "identity": "inner products"}
READER = (
    "The reader has m random sign vectors and the threshold tau; it tells D0 from D1 when it fires on D1 "
    "and not on D0. P is over its signs."
)
EQUAL_ROWS = "Attention returns equal rows for D0 and D1, so that no reader of them whatsoever tells D0 from D1."
ONLY_THIS_READER = "anything about another reader, threshold or number of signs, or about trained weights"


def verdict_statement(document: Mapping[str, Any], probabilities: FiringProbabilities) -> tuple[str, ...]:
    """Return the sentences for one point from its verified certificate."""
    delta, verdict = document["delta"], document["verdict"]
    p0, p1, only, fire_d0, fire_d1 = (
        to_text(getattr(probabilities, name)) for name in ("p0", "p1", "only_d1", "fire_d0", "fire_d1")
    )
    chance = with_rounding_mark(probabilities.distinguish)
    reasons = {
        "distinguishes": f"at least 1 - {delta}",
        "blind": f"at most {delta}",
        "saturated": f"at most {delta}, with the reader firing on both D0 and D1 at least half of the time",
        "partial": f"more than {delta} and less than 1 - {delta}",
    }
    lemma, limit = document["equal_rows"], ONLY_THIS_READER
    equal_rows: tuple[str, ...] = ()
    if lemma in LEMMAS:
        limit = "anything in floating-point arithmetic"
        equal_rows = (f"{EQUAL_ROWS} Lemma of {lemma}: {LEMMAS[lemma]}.",)
    return (
        *subject(document, words(document["parameters"]), document["parameters"].get("form")),
        f"{P} = {chance}, {reasons[verdict]}: {verdict} at delta {delta}.",
        f"One neuron fires on D0 with probability {p0}, on D1 with {p1}, on D1 and not on D0 with {only}; "
        f"the fractions in the file are exact. All m together: {fire_d0} on D0 and {fire_d1} on D1.",
        *equal_rows,
        f"Not claimed: anything at other parameters, and {limit}.",
    )


def subject(document: Mapping[str, Any], place: str, form: str | None) -> tuple[str, ...]:
    """Return the sentences that name and define the mechanism and the construction."""
    mechanism, construction = document["mechanism"], document["construction"]
    first = f"{mechanism_words(mechanism)} on {construction} with {place}."
    return first, scoring(mechanism), meaning(construction, form)


def meaning(construction: str, form: str | None) -> str:
    """Describe the construction and its reader."""
    description = " ".join((DEFINITIONS[construction].__doc__ or "").split())
    return f"{description.format(scores=SCORES.get(form or '', ''))} {READER}"


def scoring(mechanism: Mapping[str, Any]) -> str:
    """Describe the attention weight of a key under the mechanism."""
    return f"{mechanism['name']}: a key weighs {WEIGHTS[mechanism['name']]}, over the sum for all keys."


def mechanism_words(mechanism: Mapping[str, Any]) -> str:
    """Return the mechanism's name and settings as text."""
    settings = words({name: value for name, value in mechanism.items() if name != "name"})
    return f"{mechanism['name']} ({settings})" if settings else str(mechanism["name"])


def words(values: Mapping[str, Any]) -> str:
    """Return the values as `name=value` words, without those that are not given."""
    return " ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def with_rounding_mark(value: Enclosure, mark: str = " (rounded)") -> str:
    """Return a probability with 12 digits, marked as rounded unless it is exact.

    >>> with_rounding_mark((Fraction(0), Fraction(0))), with_rounding_mark((Fraction(1, 3), Fraction(1, 3)))
    ('0', '0.333333333333 (rounded)')
    """
    text = to_text(value)
    return text if value == (Fraction(text), Fraction(text)) else f"{text}{mark}"


def to_text(value: Fraction | Enclosure) -> str:
    """Return a probability with 12 digits."""
    return f"{float(value if isinstance(value, Fraction) else value[0]):.12g}"
