"""The scale of a callable's logits is measured from ratios of weights, whatever stands around them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from separatrix.mechanisms import Causality, Mechanism, examples
from separatrix.mechanisms.calling import calling_of, scale_note
from separatrix.mechanisms.custom import CustomMechanism, wrap
from separatrix.mechanisms.logits import LogitMeasurement, measure_logit_scale

SDPA = functional.scaled_dot_product_attention


def measure(attend: Any, **how: object) -> LogitMeasurement:
    return measure_logit_scale(as_custom(attend, **how))


def as_custom(attend: Any, **how: object) -> CustomMechanism:
    found = wrap(attend, "mine", how)
    assert isinstance(found, CustomMechanism)
    return found


def softmax(q: Tensor, k: Tensor, v: Tensor, factor: float, bias: Tensor | float = 0.0) -> Tensor:
    return (factor * q @ k.mT + bias).softmax(-1) @ v


def root(q: Tensor) -> float:
    return float(q.shape[-1] ** -0.5)


def gate(q: Tensor) -> Tensor:
    return q.mean(-1, keepdim=True).sigmoid()


def future(q: Tensor, k: Tensor) -> Tensor:
    return torch.zeros(q.shape[-2], k.shape[-2], dtype=q.dtype).masked_fill(
        torch.ones(q.shape[-2], k.shape[-2]).triu(1) > 0, -torch.inf
    )


def distances(q: Tensor, k: Tensor) -> Tensor:
    return (torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])).abs().to(q)


def forgetting(q: Tensor, k: Tensor) -> Tensor:
    """A bias that depends on the keys between, as that of forgetting attention."""
    gates = functional.logsigmoid(k.sum(-1)).cumsum(-1)
    return gates[..., :, None] - gates[..., None, :] + future(q, k)


def rotated(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    a, b, cos, sin = x[..., :half], x[..., half : 2 * half], angle.cos().to(x), angle.sin().to(x)
    return torch.cat([a * cos - b * sin, a * sin + b * cos, x[..., 2 * half :]], dim=-1)


def at_length_one(x: Tensor) -> Tensor:
    return functional.normalize(x, dim=-1)


def kernel(f: Callable[[Tensor], Tensor], q: Tensor, k: Tensor, v: Tensor, normalised: bool = True) -> Tensor:
    weights = f(q @ k.mT)
    return (weights / weights.sum(-1, keepdim=True) if normalised else weights) @ v


def off_by_one(weights: Tensor) -> Tensor:
    return weights / (1 + weights.sum(-1, keepdim=True))


class Headed(nn.Module):
    """A learned factor for each head."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.linspace(0.5, 2, 4)[:, None, None])

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.factor * SDPA(q, k, v)


class Projected(nn.Module):
    """A learned gate, and a projection of the result with a bias; or one of queries and keys."""

    def __init__(self, result: bool, gated: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.gate, self.map, self.result, self.gated = nn.Linear(16, 1), nn.Linear(16, 16), result, gated

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if not self.result:
            return SDPA(self.map(q), self.map(k), v)
        out: Tensor = self.map(SDPA(q, k, v))
        return self.gate(q).sigmoid() * out if self.gated else out


SCALED = {
    "plain": SDPA,
    "gate": lambda q, k, v: gate(q) * SDPA(q, k, v),
    "gate by values": lambda q, k, v: v.sigmoid() * SDPA(q, k, v),
    "factor": lambda q, k, v: 0.5 * SDPA(q, k, v),
    "negative factor": lambda q, k, v: -0.5 * SDPA(q, k, v),
    "factors of heads": Headed(),
    "norm of the result": lambda q, k, v: functional.normalize(SDPA(q, k, v), dim=-1),
    "a key more": lambda q, k, v: off_by_one((q @ k.mT * root(q)).exp()) @ v,
    "causal": lambda q, k, v: gate(q) * softmax(q, k, v, root(q), future(q, k)),
    "distance": lambda q, k, v: gate(q) * softmax(q, k, v, root(q), -0.3 * distances(q, k)),
    "forgetting": lambda q, k, v: gate(q) * softmax(q, k, v, root(q), forgetting(q, k)),
    "rotary": lambda q, k, v: gate(q) * softmax(rotated(q), rotated(k), v, root(q)),
    "float32": lambda q, k, v: 0.5 * SDPA(q.float(), k.float(), v.float()).to(v),
    "sigmoid": lambda q, k, v: gate(q) * kernel(torch.sigmoid, root(q) * q, k, v, normalised=False),
    "polynomial": lambda q, k, v: gate(q) * kernel(lambda x: (1 + x) ** 2, root(q) * q, k, v),
}


@pytest.mark.parametrize("name", SCALED)
def test_a_division_by_the_root_of_the_width_is_seen_behind_anything(name: str) -> None:
    scale = measure(SCALED[name]).scale
    assert scale is not None
    assert scale.undone_by == "sqrt"
    assert scale.words == (
        "It divides its logits by sqrt(width): at width 64 they are 0.125 <q, k>. "
        "What follows is with that; --scale sqrt undoes it."
    )
    assert measure(SCALED[name], scale="sqrt") == LogitMeasurement(None)


@pytest.mark.parametrize("gated", [False, True])
def test_it_is_seen_behind_a_projection_of_the_result(gated: bool) -> None:
    mechanism = as_custom(Projected(result=True, gated=gated))
    scale = measure_logit_scale(mechanism).scale
    assert (scale is None) == mechanism.attend_any_size.mixes == gated
    assert scale is None or (round(scale.factor, 9), scale.width, scale.undone_by) == (0.25, 16, "sqrt")


@pytest.mark.parametrize(
    ("factor", "undone_by", "words"),
    [
        (lambda q, k: 1.0, None, ""),
        (lambda q, k: 0.125, "8", "At width 64 its logits are 0.125 <q, k>"),
        (lambda q, k: 2.0, "0.5", "At width 64 its logits are 2 <q, k>"),
        (lambda q, k: 1 / q.shape[-1], "width", "by width: at width 64 they are 0.01562 <q, k>"),
        (lambda q, k: 2 * root(q), "sqrt", "--scale sqrt leaves 2 <q, k>"),
        (lambda q, k: q.shape[-1] ** -0.25, None, "depends on the width: at width 64 they are 0.3536"),
        (lambda q, k: math.log(k.shape[-2]), None, ""),
        (lambda q, k: root(q) * math.log(k.shape[-2]), "sqrt", "depends on the number of tokens"),
    ],
)
def test_the_factor_and_its_law_are_told(factor: Any, undone_by: str | None, words: str) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return gate(q) * softmax(q, k, v, factor(q, k))

    found = measure(attend)
    assert found.known
    assert (found.scale is None) == (not words)
    if found.scale is not None:
        assert found.scale.undone_by == undone_by
        assert words in found.scale.words
    if undone_by is not None and "leaves" not in words and "tokens" not in words:
        assert measure(attend, scale=undone_by) == LogitMeasurement(None)


@pytest.mark.parametrize(
    "attend",
    [
        lambda q, k, v: softmax(at_length_one(q), at_length_one(k), v, 10),
        lambda q, k, v: kernel(lambda x: x**4, root(q) * q, k, v),
        lambda q, k, v: kernel(lambda x: x, root(q) * q, k, v),
    ],
    ids=["length 1", "power", "linear"],
)
def test_a_scale_that_changes_nothing_is_not_spoken_of(attend: Any) -> None:
    assert measure(attend) == LogitMeasurement(None)


def unknown(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Features that are no function of <q, k>."""
    q, k = functional.elu(q) + 1, functional.elu(k) + 1
    return kernel(lambda x: x, q, k, v)


@pytest.mark.parametrize("attend", [unknown, Projected(result=False)], ids=["features", "projected"])
def test_what_cannot_be_measured_is_said(attend: Any) -> None:
    mechanism = as_custom(attend)
    assert measure_logit_scale(mechanism) == LogitMeasurement(None, known=False)
    said = "The scale of its logits could not be measured: verdicts are for the queries and keys as they are."
    assert calling_of(mechanism).words[0] == said
    assert scale_note(mechanism, 102).endswith(f"if it divides them by sqrt(width), ask {typed(mechanism)}.")
    assert measure(attend, scale="sqrt").known, "whoever gives a scale knows it"


def typed(mechanism: CustomMechanism) -> str:
    return f"{mechanism.typed}:scale=sqrt"


def test_keys_of_width_one_have_no_root_to_divide_by() -> None:
    assert scale_note(as_custom(unknown), 1) == ""
    by_width = as_custom(lambda q, k, v: softmax(q, k, v, 1 / q.shape[-1]))
    assert scale_note(by_width, 4) == "It divides its logits by width, 4 here; mine:scale=width undoes it."


DIVIDES = {"multiscale-retention"}
"""Those whose formula says that they divide by sqrt(width)."""


@pytest.mark.parametrize("known", examples(), ids=lambda each: each.spelled)
def test_no_registered_mechanism_is_accused(known: Mechanism) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return known(q, k, v, causal=known.causality is Causality.ALWAYS)

    scale = measure(attend).scale
    assert (scale is not None) == (known.name in DIVIDES)
    assert scale is None or "sqrt(width" in known.formula
