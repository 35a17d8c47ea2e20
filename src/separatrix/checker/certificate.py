"""Parsing of a certificate into typed values, with the construction it refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from fractions import Fraction
from inspect import signature
from typing import Any, TypeGuard

from separatrix.checker import document as documents
from separatrix.checker.constructions import MOST_BLOCKS, SpikeModel, ThresholdKey, cross, location, plain, spike
from separatrix.checker.document import MOST_DIGITS, between, entries, exact, fields, header, integer, require, word
from separatrix.checker.kernels import Kernel, PowerKernel, SoftmaxKernel, TaylorKernel
from separatrix.checker.tokens import LEMMAS, MOST_WORK, TOKENS, TokenModel, token_model
from separatrix.core.errors import UsageError

FORMAT = "separatrix certificate"
VERSION = 1
FIELDS = ("parameters", "neuron", "network", "delta", "verdict", "equal_rows")
Model = SpikeModel | TokenModel
BLOCK_MODELS: dict[str, Callable[..., Model]] = {"spike": spike, "cross": cross, "location": location, "plain": plain}
DEFINITIONS: dict[str, Callable[..., object]] = {**BLOCK_MODELS, **TOKENS}
PARAMETERS = {
    name: tuple(dict.fromkeys(key for key in ("m", "tau", *signature(define).parameters) if key != "label"))
    for name, define in DEFINITIONS.items()
}
LEAST = {"n": 2, "d": 4, "k": 2, "levels": 2, "at": 0}
LEAST |= dict.fromkeys(("m", "r0", "r1", "q", "width", "digits", "groups"), 1)
"""The least values of parameters that are whole numbers; the others are positive rationals."""
MOST = {"d": MOST_BLOCKS + 3, "groups": 11}
MAY_VANISH = ("a0", "gap", "rho", "noise", "spread")
MECHANISMS = {"softmax": ("temperature",), "linear": (), "power": ("beta",), "taylor": ("order",)}
NO_LEMMA = "not claimed"
VERDICTS = ("distinguishes", "blind", "saturated", "partial")


@dataclass(frozen=True)
class Certificate:
    """The statements of a certificate; only their form has been verified."""

    kernel: Kernel
    model: Model
    m: int
    spike_weights: dict[tuple[int, str], tuple[Fraction, Fraction]]
    thresholds: dict[ThresholdKey, int]
    neuron: dict[str, Fraction]
    network: dict[str, float]
    delta: Fraction
    verdict: str
    lemma: str
    """The lemma by which D0 and D1 have equal rows, or NO_LEMMA."""


def is_certificate(document: object) -> TypeGuard[dict[str, Any]]:
    """Whether a document states its format and version."""
    return isinstance(document, dict) and "format" in document and "version" in document


def read(document: object) -> Certificate:
    """Parse a certificate; raise Malformed, or a UsageError if the document is no certificate at all."""
    if not is_certificate(document):
        raise UsageError("this is no certificate: it is not an object with the fields format and version")
    has_blocks = document.get("construction") in list(BLOCK_MODELS)
    body = header(document, FORMAT, VERSION, (*FIELDS, *(("spike_weights", "thresholds") if has_blocks else ())))
    kernel = read_kernel(body["mechanism"])
    model, m = read_model(word(body["construction"], "construction", PARAMETERS), body["parameters"])
    neuron = fields(body["neuron"], "neuron", ("p0", "p1", "only_d1"))
    network = fields(body["network"], "network", ("fire_d0", "fire_d1", "distinguish"))
    return Certificate(
        kernel,
        model,
        m,
        _spike_weights(body["spike_weights"], model) if isinstance(model, SpikeModel) else {},
        _thresholds(body["thresholds"], model) if isinstance(model, SpikeModel) else {},
        {name: exact(value, f"neuron {name}") for name, value in neuron.items()},
        {name: documents.probability(value, f"network {name}") for name, value in network.items()},
        between(body["delta"], "delta", Fraction(1, 2)),
        word(body["verdict"], "verdict", VERDICTS),
        word(body["equal_rows"], "equal_rows", (NO_LEMMA, *LEMMAS)),
    )


def mechanism_name(value: Any) -> str:
    """Return the name of a mechanism."""
    require(isinstance(value, dict) and "name" in value, "mechanism is not an object with a name")
    return word(value["name"], "mechanism name", MECHANISMS)


def read_kernel(value: Any) -> Kernel:
    """Return the kernel of a mechanism and its settings."""
    name = mechanism_name(value)
    settings = fields(value, "mechanism", ("name", *MECHANISMS[name]))
    if name == "taylor":
        return TaylorKernel(integer(settings["order"], "order", 1, 1000))
    if name == "softmax":
        temperature = exact(settings["temperature"], "temperature", MOST_DIGITS)
        require(temperature > 0, "temperature is not positive")
        return SoftmaxKernel(temperature)
    beta = exact(settings["beta"], "beta", MOST_DIGITS) if name == "power" else Fraction(1)
    require(beta > 0, "beta is not positive")
    return PowerKernel(beta)


def read_model(construction: str, value: object) -> tuple[Model, int]:
    """Return the construction at its parameters, and m."""
    body, numbers = fields(value, "parameters", PARAMETERS[construction]), dict[str, Any]()
    for name, entry in body.items():
        if name == "form":
            numbers[name] = word(entry, name, ("ones", "identity"))
        elif name in LEAST:
            is_absent = name == "digits" and entry is None
            numbers[name] = None if is_absent else integer(entry, name, LEAST[name], MOST.get(name))
        else:
            numbers[name] = exact(entry, name, MOST_DIGITS)
            may_vanish = name in MAY_VANISH or (construction, name) == ("parity", "b")
            fault = f"{name} is {'negative' if may_vanish else 'not positive'}"
            require(numbers[name] > 0 or (may_vanish and numbers[name] == 0), fault)
    require("a0" not in numbers or numbers["a0"] < numbers["a1"], "a0 is not less than a1")
    m = numbers.pop("m")
    if construction in BLOCK_MODELS:
        return BLOCK_MODELS[construction](**numbers), m
    model = token_model(construction, **numbers)
    # Numbers of thousands of digits take long to add up for thousands of sign vectors.
    require(model.blocks * len(repr(body)) <= MOST_WORK, "the parameters are too long for so many sign vectors")
    return model, m


def _spike_weights(value: object, model: SpikeModel) -> dict[tuple[int, str], tuple[Fraction, Fraction]]:
    """Parse one enclosure for every label and kind of row."""
    expected_keys = [(label, name) for label in (0, 1) for name in model.rows[label]]
    weights = {}
    for entry in entries(value, "spike_weights", len(expected_keys)):
        body = fields(entry, "a spike weight", ("label", "row", "enclosure"))
        label = integer(body["label"], "the label of a spike weight", 0, 1)
        row = word(body["row"], "the row of a spike weight", model.rows[label])
        low, high = (exact(end, "an end of an enclosure") for end in entries(body["enclosure"], "an enclosure", 2))
        weights[label, row] = (low, high)
    require(len(weights) == len(expected_keys), "spike_weights lists a row twice")
    return weights


def _thresholds(value: object, model: SpikeModel) -> dict[ThresholdKey, int]:
    """Parse one least count for every label, sign triple and row that can fire."""
    thresholds = {}
    for key, body in read_rows(value, "threshold", model, set(model.threshold_keys()), ("least",)):
        thresholds[key] = integer(body["least"], f"the least count of {describe_threshold(key)}", 0, model.blocks + 1)
    return thresholds


def read_rows(
    value: object, noun: str, model: SpikeModel, expected_keys: Set[ThresholdKey], names: tuple[str, ...]
) -> Iterator[tuple[ThresholdKey, dict[str, Any]]]:
    """Yield the key and the entry of every row and sign triple, each of which is listed once."""
    keys = set()
    for entry in entries(value, f"{noun}s", len(expected_keys)):
        body = fields(entry, f"a {noun}", ("label", "signs", "row", "own_sign", *names))
        label, signs = integer(body["label"], f"the label of a {noun}", 0, 1), entries(body["signs"], "signs", 3)
        y_1, y_block, y_d = (integer(sign, "a sign", -1, 1) for sign in signs)
        row = word(body["row"], f"the row of a {noun}", model.rows[label])
        key = label, (y_1, y_block, y_d), row, integer(body["own_sign"], "an own sign", -1, 1)
        require(key in expected_keys, f"{noun}s has an entry for no row there is: {describe_threshold(key)}")
        require(key not in keys, f"{noun}s lists {describe_threshold(key)} twice")
        keys.add(key)
        yield key, body


def describe_threshold(key: ThresholdKey) -> str:
    """Describe the row of a threshold."""
    label, signs, row, own_sign = key
    sign_text = {0: "", 1: " with own sign +", -1: " with own sign -"}[own_sign]
    return f"D{label}, row {row}{sign_text}, signs ({', '.join(f'{sign:+d}' for sign in signs)})"
