"""Parsing of a certificate into typed values, with the construction it refers to."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from separatrix.checker import constructions
from separatrix.checker.constructions import SpikeModel, ThresholdKey
from separatrix.checker.document import MOST_DIGITS, Malformed, entries, exact, fields, integer, probability, word
from separatrix.checker.kernels import Kernel, PowerKernel, SoftmaxKernel, TaylorKernel
from separatrix.core.errors import UsageError

FORMAT = "separatrix certificate"
VERSION = 1
MOST_BLOCKS = 200_000
"""The maximum number of block signs, besides the spike's, in a certificate."""

FIELDS = (
    *("format", "version", "construction", "mechanism", "parameters", "spike_weights", "thresholds"),
    *("neuron", "network", "delta", "verdict", "sha256"),
)
PARAMETERS = {
    "spike": ("n", "d", "m", "a0", "a1", "b", "c", "tau", "form"),
    "cross": ("n", "d", "m", "a0", "a1", "b", "c", "tau", "r_Q"),
    "plain": ("n", "m", "peak", "base", "spread", "tau"),
}
MECHANISMS = {"softmax": ("temperature",), "linear": (), "power": ("beta",), "taylor": ("order",)}
VERDICTS = ("distinguishes", "blind", "saturated", "partial")


@dataclass(frozen=True)
class Certificate:
    """The statements of a certificate; only their form has been verified."""

    kernel: Kernel
    model: SpikeModel
    m: int
    spike_weights: dict[tuple[int, str], tuple[Fraction, Fraction]]
    thresholds: dict[ThresholdKey, int]
    neuron: dict[str, Fraction]
    network: dict[str, float]
    delta: Fraction
    verdict: str
    sha256: str


def is_certificate(document: object) -> bool:
    """Whether a document states its format and version."""
    return isinstance(document, dict) and "format" in document and "version" in document


def read(document: object) -> Certificate:
    """Parse a certificate; raise Malformed, or a UsageError if the document is no certificate at all."""
    if not is_certificate(document):
        raise UsageError("this is no certificate: it is not an object with the fields format and version")
    body = fields(document, "the certificate", FIELDS)
    if type(body["format"]) is not str or body["format"] != FORMAT:
        raise Malformed(f"format is not {FORMAT}")
    if type(body["version"]) is not int or body["version"] != VERSION:
        raise Malformed(f"version is not {VERSION}, the one this checker knows")
    kernel = read_kernel(body["mechanism"])
    model, m = read_model(word(body["construction"], "construction", PARAMETERS), body["parameters"])
    delta = exact(body["delta"], "delta", MOST_DIGITS)
    if not 0 < delta < Fraction(1, 2):
        raise Malformed("delta does not lie between 0 and 1/2")
    neuron = fields(body["neuron"], "neuron", ("p0", "p1", "only_d1"))
    network = fields(body["network"], "network", ("fire_d0", "fire_d1", "distinguish"))
    if type(body["sha256"]) is not str:
        raise Malformed("sha256 is not text")
    return Certificate(
        kernel,
        model,
        m,
        _spike_weights(body["spike_weights"], model),
        _thresholds(body["thresholds"], model),
        {name: exact(value, f"neuron {name}") for name, value in neuron.items()},
        {name: probability(value, f"network {name}") for name, value in network.items()},
        delta,
        word(body["verdict"], "verdict", VERDICTS),
        body["sha256"],
    )


def read_kernel(value: object) -> Kernel:
    """Return the kernel of a mechanism and its settings."""
    if not isinstance(value, dict) or "name" not in value:
        raise Malformed("mechanism is not an object with a name")
    name = word(value["name"], "mechanism name", MECHANISMS)
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


def read_model(construction: str, value: object) -> tuple[SpikeModel, int]:
    """Return the construction at its parameters, and m."""
    parameters = fields(value, "parameters", PARAMETERS[construction])
    m = integer(parameters["m"], "m", 1)
    if construction == "plain":
        return _plain(parameters), m
    n, d = integer(parameters["n"], "n", 3), integer(parameters["d"], "d", 4, MOST_BLOCKS + 3)
    a0, a1, b, c, tau = _exact_parameters(parameters, "a0", "a1", "b", "c", "tau")
    require(n % (d - 2) == 0, "n is not a multiple of d-2")
    require(0 <= a0 < a1, "a0 and a1 are not 0 <= a0 < a1")
    require(b > 0, "b is not positive")
    require(c > 0, "c is not positive")
    require(tau > 0, "tau is not positive")
    if construction == "spike":
        form = word(parameters["form"], "form", ("ones", "identity"))
        return constructions.spike(n, d, (a0, a1), b, c, tau, form), m
    (r_q,) = _exact_parameters(parameters, "r_Q")
    require(r_q > 0, "r_Q is not positive")
    return constructions.cross(n, d, (a0, a1), b, c, tau, r_q), m


def _plain(parameters: dict[str, Any]) -> SpikeModel:
    n = integer(parameters["n"], "n", 3, MOST_BLOCKS + 1)
    peak, base, spread, tau = _exact_parameters(parameters, "peak", "base", "spread", "tau")
    require(peak > 0, "peak is not positive")
    require(spread == 0, "spread is not 0, and only equal scores have a closed form")
    require(base > 1, "base is not more than 1")
    require(tau > 0, "tau is not positive")
    return constructions.plain(n, peak, base, tau)


def _exact_parameters(parameters: dict[str, Any], *names: str) -> list[Fraction]:
    return [exact(parameters[name], name, MOST_DIGITS) for name in names]


def require(holds: bool, fault: str) -> None:
    """Raise Malformed unless a requirement holds."""
    if not holds:
        raise Malformed(fault)


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
    expected_keys = set(model.threshold_keys())
    thresholds: dict[ThresholdKey, int] = {}
    for entry in entries(value, "thresholds", len(expected_keys)):
        body = fields(entry, "a threshold", ("label", "signs", "row", "own_sign", "least"))
        key = read_threshold_key(body, model, "a threshold")
        require(key in expected_keys, f"thresholds has an entry for no row there is: {describe_threshold(key)}")
        require(key not in thresholds, f"thresholds lists {describe_threshold(key)} twice")
        thresholds[key] = integer(body["least"], f"the least count of {describe_threshold(key)}", 0, model.blocks + 1)
    return thresholds


def read_threshold_key(body: dict[str, Any], model: SpikeModel, place: str) -> ThresholdKey:
    """Parse the row and the signs of a threshold."""
    label = integer(body["label"], f"the label of {place}", 0, 1)
    y_1, y_block, y_d = (integer(sign, "a sign", -1, 1) for sign in entries(body["signs"], f"the signs of {place}", 3))
    row = word(body["row"], f"the row of {place}", model.rows[label])
    return label, (y_1, y_block, y_d), row, integer(body["own_sign"], "an own sign", -1, 1)


def describe_threshold(key: ThresholdKey) -> str:
    """Describe the row of a threshold."""
    label, signs, row, own_sign = key
    sign_text = {0: "", 1: " with own sign +", -1: " with own sign -"}[own_sign]
    return f"D{label}, row {row}{sign_text}, signs ({', '.join(f'{sign:+d}' for sign in signs)})"
