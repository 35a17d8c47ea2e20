"""What a mechanism takes beside queries, keys and values: gates, the strength of a write, learned maps.

Each is declared once, as data, and mechanisms name those that they take in `Mechanism.extras`. Where a call
does not give one, its `default` stands in: a constant, or a fixed function of the key, which the closed
forms are about. A model learns it from its tokens by the module that `learned` makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Bool, Float, Tensor, torch

if TYPE_CHECKING:
    from separatrix.mechanisms.learned import FromTokens

Drawn = Float[Tensor, "*shape"]


@dataclass(frozen=True)
class Sizes:
    """The sizes that the shape of an extra is made of."""

    batch: int
    heads: int
    tokens: int
    width: int
    """Of a query or key of one head."""
    features: int
    """Of a value of one head."""
    rank: int = 0
    """How many summaries of the keys there are, or writes per token, in mechanisms that have such."""
    model: int = 0
    """The width of the tokens that an extra is learned from; 0 if nothing is learned."""


@dataclass(frozen=True)
class Extra:
    """One input beside q, k and v.

    >>> sizes = Sizes(batch=2, heads=3, tokens=9, width=4, features=5)
    >>> BETA.shape(sizes)
    (2, 3, 9, 1)
    """

    name: str
    """The keyword it is given by."""
    per_token: bool
    """Whether there is one for each token, in the last dimension but one; else it is for all of them."""
    shape: Callable[[Sizes], tuple[int, ...]]
    default: Callable[[Any, Tensor, Tensor, Tensor], Tensor]
    """What stands in where none is given, from the mechanism, q, k and v."""
    draw: Callable[[Sizes, torch.Generator], Drawn]
    """Random numbers of its domain, in float64, for trying mechanisms on them."""
    learned: Callable[[Sizes], FromTokens]
    """The module that learns it, from tokens (batch, tokens, model) to this shape, as in its source paper."""
    allowed: Callable[[Tensor], Bool[Tensor, "*shape"]]
    """Where numbers are in its domain."""
    domain: str
    """The domain in words."""
    constant: str = ""
    """The parameter that its default is made of, where that has another name."""

    def checked(self, value: Any, owner: str, sizes: Sizes) -> Tensor:
        """What was given, if it has the shape, the type and the range; else one line that names its owner."""
        what, wanted = f"{self.name} of {owner} must", self.shape(sizes)
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            raise UsageError(f"{what} be a tensor of floats of shape {wanted}, not {described(value)}")
        if value.shape != wanted:
            raise UsageError(f"{what} have shape {wanted}, not {tuple(value.shape)}")
        if not bool(self.allowed(value.detach()).all()):
            raise UsageError(f"{what} be {self.domain}")
        return value


def described(value: Any) -> str:
    """The type of a value, and of a tensor its dtype and shape."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__


def _per_head(sizes: Sizes) -> tuple[int, ...]:
    return sizes.batch, sizes.heads, sizes.tokens, 1


def _per_channel(sizes: Sizes) -> tuple[int, ...]:
    return sizes.batch, sizes.heads, sizes.tokens, sizes.width


def _map(sizes: Sizes) -> tuple[int, ...]:
    return sizes.heads, sizes.width, sizes.width


def _uniform(low: float, high: float, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _module(name: str, **options: float | int) -> Callable[[Sizes], FromTokens]:
    """A factory of a module in `learned`, which is imported when one is made: it needs torch."""

    def made(sizes: Sizes) -> FromTokens:
        found: FromTokens = getattr(import_module("separatrix.mechanisms.learned"), name)(sizes, **options)
        return found

    return made


def _log_gates(shape: Callable[[Sizes], tuple[int, ...]], learned: Callable[[Sizes], FromTokens]) -> Extra:
    return Extra(
        name="log_gates",
        constant="gate",
        per_token=True,
        shape=shape,
        default=lambda mechanism, q, k, v: mechanism.default_gates(k),
        draw=lambda sizes, generator: _uniform(-2.0, 0.0, shape(sizes), generator),
        learned=learned,
        allowed=lambda x: x <= 0,
        domain="at most 0, as logs of [0, 1]",
    )


CHANNEL_GATES = _log_gates(_per_channel, _module("LowRankGates"))
"""Logs of gates per token and channel of the key, as in GLA; minus infinity is a reset."""

HEAD_GATES = _log_gates(_per_head, _module("StepGates", low=1.0, high=16.0))
"""Logs of gates per token and head, as in Mamba-2."""

DELTA_GATES = _log_gates(_per_head, _module("StepGates", low=0.0, high=16.0))
"""The same, from the initial values of Gated DeltaNet."""

CHANNEL_STEP_GATES = _log_gates(_per_channel, _module("LowRankStepGates"))
"""Logs of gates per token and channel of the key, as in Kimi delta attention."""

FORGET_GATES = _log_gates(_per_head, _module("ForgetGates"))
"""Logs of gates per token and head, as in the Forgetting Transformer and MesaNet."""

SIGMOID_GATES = _log_gates(_per_channel, _module("SigmoidGates"))
"""Logs of gates per token and channel of the key, as in RWKV-7."""

BETA = Extra(
    name="beta",
    per_token=True,
    shape=_per_head,
    default=lambda mechanism, q, k, v: k.new_full((*k.shape[:-1], 1), float(mechanism.parameters.beta)),
    draw=lambda sizes, generator: _uniform(0.0, 1.0, _per_head(sizes), generator),
    learned=_module("SigmoidStrength"),
    allowed=lambda x: (x >= 0) & (x <= 2),
    domain="between 0 and 2",
)
"""How strongly a token is written by the delta rule."""

INPUT_GATES = replace(BETA, learned=_module("SigmoidStrength", bias=True))
"""How much a token counts, in MesaNet."""

RATES = Extra(
    name="rates",
    constant="rate",
    per_token=True,
    shape=_per_channel,
    default=lambda mechanism, q, k, v: torch.full_like(k, float(mechanism.parameters.rate)),
    draw=lambda sizes, generator: _uniform(0.0, 1.0, _per_channel(sizes), generator),
    learned=_module("SigmoidRates"),
    allowed=lambda x: (x >= 0) & (x <= 1),
    domain="between 0 and 1",
)
"""How strongly each channel of a token is written, in RWKV-7."""


def _per_factor(sizes: Sizes) -> tuple[int, ...]:
    return sizes.batch, sizes.heads, sizes.tokens, sizes.rank


def _per_feature(sizes: Sizes) -> tuple[int, ...]:
    return sizes.batch, sizes.heads, sizes.tokens, sizes.features


def _of_token(
    name: str,
    shape: Callable[[Sizes], tuple[int, ...]],
    default: Callable[[Any, Tensor, Tensor, Tensor], Tensor],
    learned: Callable[[Sizes], FromTokens],
) -> Extra:
    """Channels of each token, of any finite size."""
    return Extra(
        name=name,
        per_token=True,
        shape=shape,
        default=default,
        draw=lambda sizes, generator: _normal(shape(sizes), generator),
        learned=learned,
        allowed=lambda x: x.isfinite(),
        domain="finite",
    )


def _further(name: str, per_factor: Callable[[Sizes], int], default: Callable[..., Tensor]) -> Extra:
    def shape(sizes: Sizes) -> tuple[int, ...]:
        return sizes.batch, sizes.heads, sizes.tokens, (sizes.rank - 1) * per_factor(sizes)

    return _of_token(name, shape, default, lambda sizes: _module("PerHead", channels=shape(sizes)[-1])(sizes))


FURTHER_KEYS = _further(
    "further_keys", lambda sizes: sizes.width, lambda mechanism, q, k, v: mechanism.further_keys(k)
)
FURTHER_VALUES = _further(
    "further_values",
    lambda sizes: sizes.features,
    lambda mechanism, q, k, v: v.new_zeros(*v.shape[:-1], (mechanism.parameters.factors - 1) * v.shape[-1]),
)
"""What a token writes before its own key and value, in DeltaProduct; `rank` is the number of all writes."""

FACTOR_BETAS = replace(
    BETA,
    shape=_per_factor,
    default=lambda mechanism, q, k, v: k.new_full(
        (*k.shape[:-1], mechanism.parameters.factors), float(mechanism.parameters.beta)
    ),
    draw=lambda sizes, generator: _uniform(0.0, 2.0, _per_factor(sizes), generator),
    learned=lambda sizes: _module("SigmoidStrength", largest=2.0, each=sizes.rank)(sizes),
)
"""How strongly each of a token's writes is written, in DeltaProduct."""

LEVEL_SCALES = Extra(
    name="level_scales",
    constant="share",
    per_token=True,
    shape=_per_factor,
    default=lambda mechanism, q, k, v: mechanism.default_scales(k),
    draw=lambda sizes, generator: _uniform(0.0, 1.0, _per_factor(sizes), generator),
    learned=_module("LevelScales"),
    allowed=lambda x: (x >= 0) & x.isfinite(),
    domain="0 or more, and finite",
)
"""What each level of the past weighs for a token, in log-linear attention; `rank` is how many there are."""

DIRECTIONS = _of_token("w", _per_channel, lambda mechanism, q, k, v: k, _module("LowRankDirections"))
"""Along which each token changes the keys before it, in PaTH; of any length, since they are scaled to 1."""

PATH_BETA = replace(
    BETA,
    draw=lambda sizes, generator: _uniform(0.0, 2.0, _per_head(sizes), generator),
    learned=_module("SigmoidStrength", largest=2.0, bias=True),
)
"""By how much, in PaTH: 1 takes a direction out, 2 reflects it."""

SECOND_KEYS = _of_token(
    "second_keys",
    _per_channel,
    lambda mechanism, q, k, v: mechanism.default_keys(k),
    lambda sizes: _module("PerHead", channels=sizes.width, offset=1 / sizes.width)(sizes),
)
SECOND_VALUES = _of_token(
    "second_values",
    _per_feature,
    lambda mechanism, q, k, v: torch.ones_like(v),
    lambda sizes: _module("PerHead", channels=sizes.features, offset=1.0)(sizes),
)
"""Keys and values of the second of two tokens attended to together, in 2-simplicial attention."""

DECAY = Extra(
    name="decay",
    per_token=False,
    shape=lambda sizes: (sizes.heads,),
    default=lambda mechanism, q, k, v: k.new_full(
        (k.shape[1],), float(mechanism.parameters.decay), dtype=torch.float64
    ),
    draw=lambda sizes, generator: _uniform(0.5, 1.0, (sizes.heads,), generator),
    learned=_module("FixedDecays"),
    allowed=lambda x: (x >= 0) & (x <= 1),
    domain="between 0 and 1",
)
"""What each head keeps from one token to the next."""


def _of_channels(
    name: str, default: Callable[[Any], float], least: float, learned: Callable[[Sizes], FromTokens]
) -> Extra:
    def shape(sizes: Sizes) -> tuple[int, ...]:
        return sizes.heads, sizes.width

    return Extra(
        name=name,
        per_token=False,
        shape=shape,
        default=lambda mechanism, q, k, v: k.new_full((k.shape[1], k.shape[-1]), default(mechanism)),
        draw=lambda sizes, generator: _uniform(0.25, 2.0, shape(sizes), generator),
        learned=learned,
        allowed=lambda x: (x > least) & x.isfinite(),
        domain="finite" if least == -math.inf else f"above {least:g}, and finite",
    )


REMOVAL = _of_channels("removal", lambda mechanism: 1.0, -math.inf, _module("RemovalScales"))
"""What a key is multiplied by before it takes back, in RWKV-7."""
REPLACEMENT = _of_channels(
    "replacement",
    lambda mechanism: float(mechanism.parameters.replacement),
    -math.inf,
    _module("ReplacementShares"),
)
"""How much of the rate goes into the key that is written, in RWKV-7."""
RIDGES = replace(
    _of_channels("ridges", lambda mechanism: float(mechanism.parameters.ridge), 0.0, _module("Ridges")),
    constant="ridge",
)
"""How stiff a fit is in each channel of the key, in MesaNet."""


def _map_of(name: str) -> Extra:
    return Extra(
        name=name,
        per_token=False,
        shape=_map,
        default=lambda mechanism, q, k, v: torch.eye(k.shape[-1], dtype=k.dtype, device=k.device).expand(
            k.shape[1], -1, -1
        ),
        draw=lambda sizes, generator: _normal(_map(sizes), generator) / sizes.width**0.5,
        learned=_module("IdentityMaps"),
        allowed=lambda x: x.isfinite(),
        domain="finite",
    )


QUERY_MAP, KEY_MAP = _map_of("W_q"), _map_of("W_k")
"""What queries and keys are multiplied by before their features are taken, one map per head."""


def _projection(name: str, place: int) -> Extra:
    return Extra(
        name=name,
        per_token=False,
        shape=lambda sizes: (sizes.rank, sizes.tokens),
        default=lambda mechanism, q, k, v: mechanism.projections(k.shape[-2])[place].to(v),
        draw=lambda sizes, generator: _normal((sizes.rank, sizes.tokens), generator) / sizes.rank**0.5,
        learned=_module("Projection"),
        allowed=lambda x: x.isfinite(),
        domain="finite",
    )


KEY_PROJECTION, VALUE_PROJECTION = _projection("E", 0), _projection("F", 1)
"""What makes a few summaries of keys, and of values, in Linformer."""

SINK = Extra(
    name="sink",
    per_token=False,
    shape=lambda sizes: (sizes.heads,),
    default=lambda mechanism, q, k, v: k.new_full(
        (k.shape[1],), -torch.inf if mechanism.parameters.sink == "none" else float(mechanism.parameters.sink)
    ),
    draw=lambda sizes, generator: _normal((sizes.heads,), generator),
    learned=_module("SinkLogits"),
    allowed=lambda x: x < torch.inf,
    domain="below infinity",
)
"""The logit of one more key per head, whose value is 0; minus infinity is none."""

SLOPES = Extra(
    name="slopes",
    per_token=False,
    shape=lambda sizes: (sizes.heads,),
    default=lambda mechanism, q, k, v: mechanism.default_slopes(k),
    draw=lambda sizes, generator: _uniform(0.0, 1.0, (sizes.heads,), generator),
    learned=_module("FixedSlopes"),
    allowed=lambda x: (x >= 0) & x.isfinite(),
    domain="0 or more, and finite",
)
"""By how much the logits of each head fall from one token to the next, in ALiBi."""

DIFFERENCE = Extra(
    name="lam",
    per_token=False,
    shape=lambda sizes: (sizes.heads,),
    default=lambda mechanism, q, k, v: k.new_full((k.shape[1],), float(mechanism.parameters.lam)),
    draw=lambda sizes, generator: _normal((sizes.heads,), generator),
    learned=_module("DifferenceOfExponentials"),
    allowed=lambda x: x.isfinite(),
    domain="finite",
)
"""How much of the second softmax is taken from the first, in differential attention."""
