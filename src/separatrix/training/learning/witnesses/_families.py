"""What can be done with a mechanism: the few kinds that witnesses are written for."""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, Any

from separatrix.core.tensors import torch
from separatrix.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism


FAINT = 4e-5
"""What stands for a feature of 0 where features are above it."""


class Family(Enum):
    """How the weight of a key depends on its logit."""

    SHARP = "like exp, or sharper: at large logits the largest one takes all"
    SUM = "the logit itself: a sum of <q,k> v, perhaps forgotten slowly or divided by its total"
    DELTA = "a sum as well, where writes are weak: the delta rule, and the fit of a ridge regression"
    SERIES = "the first terms of exp, up to an even power"
    POWER = "an even power of the logit"
    RECTIFIED = "the positive part of the logit, perhaps squared"
    FEATURES = "an inner product of features that are not negative"


NAMED = {
    "softmax": Family.SHARP,
    "softmax-sink": Family.SHARP,
    "fox": Family.SHARP,
    "logn-softmax": Family.SHARP,
    "hardmax": Family.SHARP,
    "sparsemax": Family.SHARP,
    "entmax": Family.SHARP,
    "topk": Family.SHARP,
    "linear": Family.SUM,
    "identity-features": Family.SUM,
    "causal-linear": Family.SUM,
    "retention": Family.SUM,
    "ssd": Family.SUM,
    "gla": Family.SUM,
    "log-linear": Family.SUM,
    "delta": Family.DELTA,
    "gated-delta": Family.DELTA,
    "kda": Family.DELTA,
    "mesanet": Family.DELTA,
    "based": Family.SERIES,
    "taylor": Family.SERIES,
    "power": Family.POWER,
    "relu": Family.RECTIFIED,
    "squared-relu": Family.RECTIFIED,
    "elu": Family.FEATURES,
    "relu-features": Family.FEATURES,
    "squared-relu-features": Family.FEATURES,
    "exp-features": Family.FEATURES,
}


SPELLINGS = (
    "softmax",
    "identity-features:normalised=no",
    "identity-features",
    "linear",
    "causal-linear",
    "retention",
    "ssd",
    "gla",
    "log-linear",
    "delta",
    "gated-delta",
    "kda",
    "mesanet",
    "based",
    "taylor:order=2",
    "power:beta=4",
    "relu",
    "squared-relu",
    "elu",
    "relu-features",
    "squared-relu-features",
    "exp-features",
    "softmax-sink",
    "fox",
    "logn-softmax",
    "hardmax",
    "sparsemax",
    "entmax",
    "topk",
)
"""One spelling of each of them, and both of the sum."""


def family_of(mechanism: Mechanism) -> Family | None:
    """The family of a mechanism; None where it is another, or its parameters make it one.

    >>> from separatrix.mechanisms import mechanism_named
    >>> family_of(mechanism_named("power:beta=4")).name, family_of(mechanism_named("power:beta=3"))
    ('POWER', None)
    """
    family = NAMED.get(mechanism.name)
    if family is None or type(mechanism) is not MECHANISMS[mechanism.name]:
        return None
    degree = {Family.SERIES: "order", Family.POWER: "beta"}.get(family, "")
    return None if getattr(mechanism.parameters, degree, 2) % 2 else family


BILINEAR = (Family.SHARP, Family.SUM, Family.SERIES, Family.POWER, Family.RECTIFIED)
"""Families that know queries and keys by their inner products alone."""


def cooling(mechanism: Mechanism, tokens: int) -> float:
    """What to multiply logits by so that a mechanism of softmax's kind is softmax, over so many tokens."""
    parameters: Any = mechanism.parameters
    if mechanism.name == "logn-softmax":
        scale = float(parameters.scale) * math.log(tokens)
        return 1 / scale if scale else 1.0
    return float(getattr(parameters, "temperature", 1))


def features_to_inputs(mechanism: Mechanism, features: Any) -> Any:
    """What has these features under the map of a mechanism of FEATURES; 0 is a small number instead.

    >>> from separatrix.mechanisms import mechanism_named
    >>> elu = mechanism_named("elu")
    >>> features = torch.tensor([0.5, 3.0])[None, None, None]
    >>> elu.features(features_to_inputs(elu, features), "key").flatten().tolist()
    [0.5, 3.0]
    """
    logs = features.clamp(min=FAINT).log()
    if mechanism.name == "elu":
        return torch.where(features >= 1, features - 1, logs)
    if mechanism.name == "exp-features":
        return logs
    return features.sqrt() if mechanism.name == "squared-relu-features" else features
