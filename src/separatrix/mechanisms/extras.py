"""Inputs of a mechanism beside queries, keys and values: gates, the strength of a write, learned maps.

Each is declared once, as data, and mechanisms list those that they take in `Mechanism.extras`. If a call does
not give an extra, its default is used: a constant, or a fixed function of the key, which the closed forms are
about. A model learns it from its tokens by the module that `make_module` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Bool, Float, Tensor, torch

if TYPE_CHECKING:
    from separatrix.mechanisms.learned import FromTokens

Shape = tuple[int, ...]

PATH_RANK = 32
"""The inner width of PaTH's directions."""


@dataclass(frozen=True)
class TokenSizes:
    """The sizes that determine the shape of an extra."""

    batch: int
    heads: int
    tokens: int
    width: int
    """Of a query or key of one head."""
    features: int
    """Of a value of one head."""
    rank: int = 0
    """The number of summaries of the keys, of writes per token, or of levels, if a mechanism has these."""
    model: int = 0
    """The width of the tokens that an extra is learned from; 0 if nothing is learned."""


@dataclass(frozen=True)
class Domain:
    """The numbers that an extra may contain."""

    words: str
    contains: Callable[[Tensor], Bool[Tensor, "*shape"]]


UNIT_INTERVAL = Domain("between 0 and 1", lambda x: (x >= 0) & (x <= 1))
UP_TO_TWO = Domain("between 0 and 2", lambda x: (x >= 0) & (x <= 2))
FINITE = Domain("finite", lambda x: x.isfinite())
POSITIVE = Domain("above 0, and finite", lambda x: (x > 0) & x.isfinite())
NOT_NEGATIVE = Domain("0 or more, and finite", lambda x: (x >= 0) & x.isfinite())
BELOW_INFINITY = Domain("below infinity", lambda x: x < torch.inf)
LOGS_OF_GATES = Domain("at most 0, as logs of [0, 1]", lambda x: x <= 0)


@dataclass(frozen=True)
class Extra:
    """One input beside q, k and v.

    >>> sizes = TokenSizes(batch=2, heads=3, tokens=9, width=4, features=5)
    >>> BETA.shape(sizes)
    (2, 3, 9, 1)
    """

    name: str
    """The keyword of the call."""
    per_token: bool
    """Whether there is one for each token, in the last dimension but one; else it is for all of them."""
    shape: Callable[[TokenSizes], Shape]
    sample: Callable[[Shape, torch.Generator], Float[Tensor, "*shape"]]
    """Draws random numbers of the domain in float64, for tests."""
    domain: Domain
    make_module: Callable[[TokenSizes], FromTokens]
    """Makes the module that learns it, from tokens (batch, tokens, model) to this shape, as in its paper."""
    parameter: str = ""
    """The parameter of the mechanism that the default is made of, if it has another name."""
    compute_default: Callable[[Any, Tensor, Tensor, Tensor], Tensor] | None = None
    """Computes the default from the mechanism, q, k and v; None: a constant, the parameter."""

    def default(self, mechanism: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the extra of a call that does not give it."""
        if self.compute_default is not None:
            return self.compute_default(mechanism, q, k, v)
        constant = float(getattr(mechanism, self.parameter or self.name))
        return k.new_full(self.shape(mechanism.sizes(q, k, v)), constant)

    def draw(self, sizes: TokenSizes, generator: torch.Generator) -> Float[Tensor, "*shape"]:
        """Return a random extra of this shape."""
        return self.sample(self.shape(sizes), generator)

    def check(self, value: Any, owner: str, sizes: TokenSizes) -> Tensor:
        """Return the value, or raise a UsageError if it has another type, shape or range."""
        subject, shape = f"{self.name} of {owner} must", self.shape(sizes)
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            raise UsageError(f"{subject} be a tensor of floats of shape {shape}, not {describe_value(value)}")
        if value.shape != shape:
            raise UsageError(f"{subject} have shape {shape}, not {tuple(value.shape)}")
        # Comparisons with NaN are false, so it is in no domain.
        if not bool(self.domain.contains(value.detach()).all()):
            raise UsageError(f"{subject} be {self.domain.words}")
        return value


def describe_value(value: Any) -> str:
    """Return the type of a value, or the dtype and shape of a tensor."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__


def _per_token(channels: Callable[[TokenSizes], int]) -> Callable[[TokenSizes], Shape]:
    """Return the shape of an extra with this number of channels for each token of a head."""
    return lambda sizes: (sizes.batch, sizes.heads, sizes.tokens, channels(sizes))


_per_head, _per_channel = _per_token(lambda sizes: 1), _per_token(lambda sizes: sizes.width)
_per_rank = _per_token(lambda sizes: sizes.rank)


def _uniform(low: float, high: float) -> Callable[[Shape, torch.Generator], Tensor]:
    def sample(shape: Shape, generator: torch.Generator) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)

    return sample


def _normal(shape: Shape, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _module(name: str, **options: Any) -> Callable[[TokenSizes], FromTokens]:
    """Return a factory of a module in `learned`, which needs torch and is imported when one is made.

    Options may be functions of the sizes.
    """

    def make(sizes: TokenSizes) -> FromTokens:
        kind = getattr(import_module("separatrix.mechanisms.learned"), name)
        arguments = {key: value(sizes) if callable(value) else value for key, value in options.items()}
        module: FromTokens = kind(sizes, **arguments)
        return module

    return make


CHANNEL_GATES = Extra(
    name="log_gates",
    parameter="gate",
    per_token=True,
    shape=_per_channel,
    compute_default=lambda mechanism, q, k, v: mechanism.default_gates(k),
    sample=_uniform(-2.0, 0.0),
    domain=LOGS_OF_GATES,
    make_module=_module("LowRankGates"),
)
"""Logs of gates per token and channel of the key, as in GLA; minus infinity is a reset."""

CHANNEL_STEP_GATES = replace(CHANNEL_GATES, make_module=_module("LowRankStepGates"))
"""Logs of gates per token and channel of the key, as in Kimi delta attention."""

SIGMOID_GATES = replace(CHANNEL_GATES, make_module=_module("SigmoidGates"))
"""Logs of gates per token and channel of the key, as in RWKV-7."""

HEAD_GATES = replace(CHANNEL_GATES, shape=_per_head, make_module=_module("StepGates", low=1.0, high=16.0))
"""Logs of gates per token and head, as in Mamba-2."""

DELTA_GATES = replace(HEAD_GATES, make_module=_module("StepGates", low=0.0, high=16.0))
"""Logs of gates per token and head, from the initial values of Gated DeltaNet."""

FORGET_GATES = replace(HEAD_GATES, make_module=_module("ForgetGates"))
"""Logs of gates per token and head, as in the Forgetting Transformer and MesaNet."""

BETA = Extra(
    name="beta",
    per_token=True,
    shape=_per_head,
    sample=_uniform(0.0, 1.0),
    domain=UP_TO_TWO,
    make_module=_module("SigmoidStrength"),
)
"""The strength of a token's write by the delta rule."""

INPUT_GATES = replace(BETA, make_module=_module("SigmoidStrength", bias=True))
"""The weight of a token, in MesaNet."""

PATH_BETA = replace(BETA, sample=_uniform(0.0, 2.0), make_module=_module("SigmoidStrength", largest=2.0, bias=True))
"""The strength of a token's change of earlier keys, in PaTH: 1 removes a direction, 2 reflects it."""

FACTOR_BETAS = replace(
    BETA,
    shape=_per_rank,
    sample=_uniform(0.0, 2.0),
    make_module=_module("SigmoidStrength", largest=2.0, writes=lambda sizes: sizes.rank),
)
"""The strength of each of a token's writes, in DeltaProduct."""

RATES = replace(
    BETA, name="rates", parameter="rate", shape=_per_channel, domain=UNIT_INTERVAL, make_module=_module("SigmoidRates")
)
"""The strength with which each channel of a token is written, in RWKV-7."""

LEVEL_SCALES = Extra(
    name="level_scales",
    parameter="share",
    per_token=True,
    shape=_per_rank,
    compute_default=lambda mechanism, q, k, v: mechanism.default_scales(k),
    sample=_uniform(0.0, 1.0),
    domain=NOT_NEGATIVE,
    make_module=_module("LevelScales"),
)
"""The weight of each level of the past for a token, in log-linear attention; `rank` counts the levels."""

DIRECTIONS = Extra(
    name="w",
    per_token=True,
    shape=_per_channel,
    compute_default=lambda mechanism, q, k, v: k,
    sample=_normal,
    domain=FINITE,
    make_module=_module("LowRank", rank=PATH_RANK),
)
"""The direction along which a token changes earlier keys, in PaTH; of any length, since it is scaled to 1.

It is learned as `W2 W1 x` (arXiv 2505.16381), without the short convolution and SiLU of the paper.
"""

FURTHER_KEYS = replace(
    DIRECTIONS,
    name="further_keys",
    shape=_per_token(lambda sizes: (sizes.rank - 1) * sizes.width),
    compute_default=lambda mechanism, q, k, v: mechanism.default_further_keys(k),
    make_module=_module("PerHead", channels=lambda sizes: (sizes.rank - 1) * sizes.width),
)
FURTHER_VALUES = replace(
    DIRECTIONS,
    name="further_values",
    shape=_per_token(lambda sizes: (sizes.rank - 1) * sizes.features),
    compute_default=lambda mechanism, q, k, v: mechanism.default_further_values(v),
    make_module=_module("PerHead", channels=lambda sizes: (sizes.rank - 1) * sizes.features),
)
"""Keys and values that a token writes before its own, in DeltaProduct; `rank` is the number of all writes."""

SECOND_KEYS = replace(
    DIRECTIONS,
    name="second_keys",
    compute_default=lambda mechanism, q, k, v: mechanism.default_second_keys(k),
    make_module=_module("PerHead", channels=lambda sizes: sizes.width, offset=lambda sizes: 1 / sizes.width),
)
SECOND_VALUES = replace(
    DIRECTIONS,
    name="second_values",
    shape=_per_token(lambda sizes: sizes.features),
    compute_default=lambda mechanism, q, k, v: torch.ones_like(v),
    make_module=_module("PerHead", channels=lambda sizes: sizes.features, offset=1.0),
)
"""Keys and values of the second of two tokens attended to together, in 2-simplicial attention."""

DECAY = Extra(
    name="decay",
    per_token=False,
    shape=lambda sizes: (sizes.heads,),
    compute_default=lambda mechanism, q, k, v: mechanism.default_decays(k),
    sample=_uniform(0.5, 1.0),
    domain=UNIT_INTERVAL,
    make_module=_module("FixedDecays"),
)
"""The share of the state that each head keeps from one token to the next."""

REMOVAL = Extra(
    name="removal",
    per_token=False,
    shape=lambda sizes: (sizes.heads, sizes.width),
    compute_default=lambda mechanism, q, k, v: k.new_ones(k.shape[1], k.shape[-1]),
    sample=_uniform(0.25, 2.0),
    domain=FINITE,
    make_module=_module("RemovalScales"),
)
"""The factor of a key before it removes, in RWKV-7."""
REPLACEMENT = replace(
    REMOVAL,
    name="replacement",
    compute_default=None,
    make_module=_module("Constant", initial=lambda sizes: torch.full((sizes.heads, sizes.width), 1.02)),
)
"""The share of the rate that goes into the key that is written, in RWKV-7: its α, which starts at 1.02."""
RIDGES = replace(
    REMOVAL, name="ridges", parameter="ridge", compute_default=None, domain=POSITIVE, make_module=_module("Ridges")
)
"""The regularisation in each channel of the key, in MesaNet."""

QUERY_MAP = Extra(
    name="W_q",
    per_token=False,
    shape=lambda sizes: (sizes.heads, sizes.width, sizes.width),
    compute_default=lambda mechanism, q, k, v: torch.eye(k.shape[-1]).to(k).expand(k.shape[1], -1, -1),
    sample=lambda shape, generator: _normal(shape, generator) / shape[-1] ** 0.5,
    domain=FINITE,
    make_module=_module("Constant", initial=lambda sizes: torch.eye(sizes.width).repeat(sizes.heads, 1, 1)),
)
KEY_MAP = replace(QUERY_MAP, name="W_k")
"""Maps of queries and keys before their features are computed, one per head; they start at the identity, as in
Hedgehog (arXiv 2402.04347, without its bias)."""

KEY_PROJECTION = Extra(
    name="E",
    per_token=False,
    shape=lambda sizes: (sizes.rank, sizes.tokens),
    compute_default=lambda mechanism, q, k, v: mechanism.projections(k.shape[-2])[0].to(v),
    sample=lambda shape, generator: _normal(shape, generator) / shape[0] ** 0.5,
    domain=FINITE,
    make_module=_module("Projection"),
)
VALUE_PROJECTION = replace(
    KEY_PROJECTION, name="F", compute_default=lambda mechanism, q, k, v: mechanism.projections(k.shape[-2])[1].to(v)
)
"""Projections of keys, and of values, to a few summaries, in Linformer."""

SINK = replace(
    DECAY,
    name="sink",
    compute_default=lambda mechanism, q, k, v: k.new_full((k.shape[1],), mechanism.sink_logit),
    sample=_normal,
    domain=BELOW_INFINITY,
    make_module=_module("SinkLogits"),
)
"""The logit of one more key per head, whose value is 0; minus infinity is none."""

SLOPES = replace(
    DECAY,
    name="slopes",
    compute_default=lambda mechanism, q, k, v: mechanism.default_slopes(k),
    sample=_uniform(0.0, 1.0),
    domain=NOT_NEGATIVE,
    make_module=_module("FixedSlopes"),
)
"""The fall of each head's logits from one token to the next, in ALiBi."""

DIFFERENCE = replace(
    SINK, name="lam", compute_default=None, domain=FINITE, make_module=_module("DifferenceOfExponentials")
)
"""The share of the second softmax that is subtracted from the first, in differential attention."""
