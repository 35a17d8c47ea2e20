"""Families of mechanisms for which witnesses are constructed in the same way."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

from separatrix.core.tensors import torch
from separatrix.mechanisms import MECHANISMS, Mechanism

MIN_FEATURE = 4e-5
"""Replaces a feature of 0 if features are positive."""


class Family(Enum):
    """How the weight of a key depends on its logit."""

    SHARP = "exp, or sharper: at large logits the largest one takes all the weight"
    SUM = "the logit itself: a sum of <q,k> v, possibly with slow decay or divided by the sum of weights"
    DELTA = "the logit itself if writes are weak: the delta rule, and the fit of a ridge regression"
    SERIES = "the Taylor series of exp up to an even order"
    POWER = "an even power of the logit"
    RECTIFIED = "the positive part of the logit, possibly squared"
    FEATURES = "an inner product of non-negative features"


_SUMS = ("linear", "causal-linear", "retention", "ssd", "gla", "log-linear")
_FEATURES = ("elu", "relu-features", "squared-relu-features", "exp-features")
_MEMBERS: tuple[tuple[Family, tuple[str, ...]], ...] = (
    (Family.SHARP, ("softmax",)),
    (Family.SUM, ("identity-features:normalised=no", "identity-features", *_SUMS)),
    (Family.DELTA, ("delta", "gated-delta", "kda", "mesanet")),
    (Family.SERIES, ("based", "taylor:order=2")),
    (Family.POWER, ("power:beta=4",)),
    (Family.RECTIFIED, ("relu", "squared-relu")),
    (Family.FEATURES, _FEATURES),
    (Family.SHARP, ("softmax-sink", "fox", "logn-softmax", "hardmax", "sparsemax", "entmax", "topk")),
)
SPELLINGS = tuple(spelling for _, spellings in _MEMBERS for spelling in spellings)
"""One spelling of every mechanism of a family, and two of identity-features."""
_FAMILIES = {spelling.split(":")[0]: family for family, spellings in _MEMBERS for spelling in spellings}

BILINEAR = (Family.SHARP, Family.SUM, Family.SERIES, Family.POWER, Family.RECTIFIED)
"""Families whose output depends on queries and keys only by their inner products."""


def family_of(mechanism: Mechanism) -> Family | None:
    """Return the family of a mechanism; None if it has none, also because of its parameters.

    >>> from separatrix.mechanisms import mechanism_named
    >>> family_of(mechanism_named("power:beta=4")).name, family_of(mechanism_named("power:beta=3"))
    ('POWER', None)
    """
    family = _FAMILIES.get(mechanism.name)
    # A subclass or a mechanism of the user may have the same name and another kernel.
    if family is None or type(mechanism) is not MECHANISMS[mechanism.name]:
        return None
    # Odd degrees are negative at negative logits.
    degree = {Family.SERIES: "order", Family.POWER: "beta"}.get(family, "")
    return None if getattr(mechanism.parameters, degree, 2) % 2 else family


def logit_factor(mechanism: Mechanism, tokens: int) -> float:
    """Return the factor of logits that makes a mechanism of the family SHARP softmax, for `tokens` tokens."""
    parameters: Any = mechanism.parameters
    if mechanism.name == "logn-softmax":
        scale = float(parameters.scale) * math.log(tokens)
        return 1 / scale if scale else 1.0
    return float(getattr(parameters, "temperature", 1))


def invert_features(mechanism: Mechanism, features: Any) -> Any:
    """Return inputs that a mechanism of FEATURES maps to these features; 0 becomes a small number.

    >>> from separatrix.mechanisms import mechanism_named
    >>> elu = mechanism_named("elu")
    >>> features = torch.tensor([0.5, 3.0])[None, None, None]
    >>> elu.compute_features(invert_features(elu, features), "key").flatten().tolist()
    [0.5, 3.0]
    """
    logs = features.clamp(min=MIN_FEATURE).log()
    if mechanism.name == "elu":
        return torch.where(features >= 1, features - 1, logs)
    if mechanism.name == "exp-features":
        return logs
    return features.sqrt() if mechanism.name == "squared-relu-features" else features
