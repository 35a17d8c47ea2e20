"""Attention with any mechanism, as a torch module with projections."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Float, Tensor
from separatrix.layers.cache import Cache
from separatrix.layers.parts import Measured, RMSNorm, ShortConvolution, TokenMask, Tokens, init_to_keep_size, rotate
from separatrix.mechanisms import Causality, Mechanism, mechanism_from
from separatrix.mechanisms.custom import CustomMechanism
from separatrix.mechanisms.decoding import NewTokens, positions_of
from separatrix.mechanisms.drawn_weights import seed_unless_given
from separatrix.mechanisms.extras import Extra, TokenSizes, describe_value
from separatrix.mechanisms.how_called import is_lazy


class Attention(Measured):
    """Projections to queries, keys and values, a mechanism, and a projection back.

    Mechanisms take plain inner products for logits, without a hidden `1/sqrt(width)`: this layer multiplies
    queries by `scale`. Inputs beside q, k and v are learned from the tokens by the modules in
    `separatrix.mechanisms.learned`, with the parametrisation and the initial values of the source paper.
    Their weights are drawn from a separate generator, so that for one seed all other weights of a model are
    equal for every mechanism.

    A mechanism that is an `nn.Module` is part of the layer: its weights train, and are saved with it.

    **Arguments:**

    - `mechanism`: a name with parameters (`"power:beta=4"`), `"module:attribute"`, or a mechanism.
    - `width`: the width of a token; the values of a head have width `width / heads`.
    - `heads`: the number of heads.
    - `key_width`: the width of the queries and keys of a head; `width / heads` by default.
    - `causal`: whether a token sees only itself and earlier tokens.
    - `rope`: the base of rotary positions, 10000 in most models; None for no rotary positions.
    - `conv`: the number of tokens in a causal convolution of each channel of q, k and v; None for none.
    - `qk_norm`: whether queries and keys of each head are normalised to a root mean square of 1, times
      learned weights.
    - `out_norm`: whether the output of each head is normalised, too. Some mechanisms add up values and others
      average them; without the norm, a comparison would measure this difference.
    - `scale`: the factor of queries; `1/sqrt(key_width)` by default.
    - `length`: the maximal number of tokens, for mechanisms with a learned weight for each, as linformer.

    >>> layer, x = Attention("gated-delta", 16, 2, conv=4), torch.randn(3, 9, 16)
    >>> prompt, cache = layer(x[:, :8])
    >>> last, cache = layer(x[:, 8:], cache=cache)
    >>> torch.allclose(torch.cat([prompt, last], dim=1), layer(x)[0], atol=1e-5)
    True
    """

    def __init__(
        self,
        mechanism: Any,
        width: int,
        heads: int,
        *,
        key_width: int | None = None,
        causal: bool = True,
        rope: float | None = None,
        conv: int | None = None,
        qk_norm: bool = False,
        out_norm: bool = True,
        scale: float | None = None,
        length: int | None = None,
    ) -> None:
        super().__init__()
        _check(width, heads, key_width, rope, conv, length)
        if scale is not None and (not _is_number(scale) or not math.isfinite(scale)):
            raise UsageError(f"scale={scale} is no number to multiply queries by; write for example scale=0.125")
        # One draw for any mechanism: those with more weights must not shift the draws of later modules.
        seed = int(torch.randint(1 << 62, (), device="cpu"))
        with _fork_generator(seed), seed_unless_given(seed):
            self.mechanism = _load_mechanism(mechanism, width // heads if key_width is None else key_width)
        _check_constants(self.mechanism)
        _check_causal(self.mechanism, causal)
        self.width, self.heads, self.causal = width, heads, causal
        self.rope, self.length = rope, length
        self.key_width = key = width // heads if key_width is None else key_width
        self.scale = key**-0.5 if scale is None else scale
        self.channels = (heads * key, heads * key, width)
        self.project = init_to_keep_size(nn.Linear(width, sum(self.channels), bias=False))
        self.convolve = None if conv is None else ShortConvolution(sum(self.channels), conv)
        self.query_norm, self.key_norm = (RMSNorm(key) if qk_norm else nn.Identity() for _ in "qk")
        self.out_norm = RMSNorm(width // heads) if out_norm else nn.Identity()
        self.back = nn.Linear(width, width, bias=False)
        with _fork_generator(seed + 1):
            self.learned = nn.ModuleDict(
                {extra.name: extra.make_module(self._sizes(extra)) for extra in self.mechanism.extras}
            )
        # A mechanism is no module: its weights are registered here, so that `parameters` contains them.
        if isinstance(self.mechanism, CustomMechanism) and isinstance(self.mechanism.attend, nn.Module):
            self.attend = self.mechanism.attend
        else:
            weights = {name: x for name, x in vars(self.mechanism).items() if isinstance(x, nn.Parameter)}
            self.own = nn.ParameterDict(weights)

    def forward(
        self, x: Tokens, present: TokenMask | None = None, cache: Cache | None = None, last: int | None = None
    ) -> tuple[Float[Tensor, "batch answered channels"], Cache | None]:
        """Return the outputs of the tokens, and the cache for later tokens (None without `causal`).

        Absent tokens have no effect on others, and their output is 0. With a cache, the tokens follow those
        read before. An input without tokens returns the cache unchanged. With `last`, only the outputs of
        that many last tokens are computed, which is cheaper.
        """
        self._check_input(x, present, cache)
        if last is not None and (type(last) is not int or not 0 <= last <= x.shape[1]):
            raise UsageError(f"last={last} must be a number of tokens, from 0 to the {x.shape[1]} of x")
        if not x.shape[0] * x.shape[1]:
            return self.back(x if last is None else x[:, x.shape[1] - last :]), cache
        if present is not None and bool(present.all()):
            present = None
        if present is not None:
            # The numbers of absent tokens may be NaN, which a mask of 0 in a later product would keep.
            x = x.masked_fill(~present[..., None], 0)
        extras = {name: module(x) for name, module in self.learned.items()}
        tokens, tail = self.project(x), None
        if self.convolve is not None:
            tokens, tail = self.convolve(tokens, None if cache is None else cache.tail, present)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in tokens.split(self.channels, dim=-1))
        q, k = self.query_norm(q), self.key_norm(k)
        if self.rope is not None:
            positions = positions_of(cache, k, present)
            q, k = (rotate(part, positions, self.rope) for part in (q, k))
        first = 0 if last is None else x.shape[1] - last
        q = self.scale * q
        if self.causal:
            out, past = self.mechanism.decode(cache, NewTokens(q, k, v, present, first, extras))
        else:
            # Not all mechanisms support fewer queries than keys; for the others, outputs are cut afterwards.
            can_skip = self.mechanism.answers_few and self.mechanism.causality is not Causality.NEVER
            start, past = first if can_skip else 0, None
            out = self.mechanism(q[..., start:, :], k, v, causal=False, first=start, present=present, **extras)
            out = out[..., first - start :, :]
        out = self.back(self.out_norm(out).transpose(1, 2).flatten(2))
        if present is not None:
            out = out.masked_fill(~present[:, first:, None], 0)
        return out, None if past is None else Cache.after(past, tail)

    def _sizes(self, extra: Extra) -> TokenSizes:
        """Return the sizes for the module of a learned extra."""
        key, value = (
            torch.empty(1, self.heads, self.length or 1, size, device="meta")
            for size in (self.key_width, self.width // self.heads)
        )
        sizes = replace(self.mechanism.sizes(key, key, value), model=self.width)
        if self.length is None and not extra.per_token:
            # A shape that changes with the number of tokens needs a maximum.
            longer = replace(sizes, tokens=sizes.tokens + 1)
            if extra.shape(longer) != extra.shape(sizes):
                raise UsageError(
                    f"{self.mechanism.spelled} learns {extra.name} for each token; give the maximal number "
                    "of tokens: length=…"
                )
        return sizes

    def _check_input(self, x: Any, present: Any, cache: Any) -> None:
        if not isinstance(x, torch.Tensor) or x.ndim != 3 or x.shape[-1] != self.width:
            raise UsageError(f"x must have shape (batch, tokens, {self.width}), not {describe_value(x)}")
        shape = tuple(x.shape[:2])
        if present is not None and (
            not isinstance(present, torch.Tensor) or present.dtype is not torch.bool or present.shape != shape
        ):
            raise UsageError(f"present must be bool of shape {shape}, batch and tokens, not {describe_value(present)}")
        if self.length is not None and x.shape[1] > self.length:
            raise UsageError(f"x has {x.shape[1]} tokens; this layer was made for length={self.length}")
        if cache is None:
            return
        if not self.causal:
            raise UsageError("a layer that is not causal has no cache: later tokens change the outputs of earlier ones")
        if not isinstance(cache, Cache) or cache.lengths.shape != x.shape[:1]:
            raise UsageError(f"cache must be what this layer returned for a batch of {x.shape[0]}")
        if not self._fits(cache):
            raise UsageError("cache must be what this layer returned, not one of another mechanism or sizes")

    def _fits(self, cache: Cache) -> bool:
        """Return whether a cache has the tensors and sizes that this layer returns."""
        tail = None if cache.tail is None else cache.tail.shape[1:]
        layer_tail = None if self.convolve is None else (self.convolve.size - 1, sum(self.channels))
        if self.mechanism.fixed_state:
            return bool(cache.state) and cache.keys is None and tail == layer_tail
        if cache.keys is None or cache.values is None or cache.state:
            return False
        sizes = [(x.shape[1], x.shape[-1]) for x in (cache.keys, cache.values)]
        layer_sizes = [(self.heads, self.key_width), (self.heads, self.width // self.heads)]
        has_extras = set(cache.extras) == set(self.mechanism.token_extras)
        return sizes == layer_sizes and has_extras and tail == layer_tail

    def state_bytes(self, tokens: int) -> int:
        """Return the exact number of bytes in the cache of one sequence after this many tokens."""
        if not self.causal:
            raise UsageError("a layer that is not causal has no state; make it with causal=True")
        if not tokens:
            return 0
        values, dtype = self.width // self.heads, self.project.weight.dtype
        memory = self.mechanism.decoding_memory(tokens, self.heads, self.key_width, values, dtype)
        tail = 0 if self.convolve is None else (self.convolve.size - 1) * sum(self.channels)
        return memory.layer_bytes + tail * dtype.itemsize

    def extra_repr(self) -> str:
        """Return the text that `repr` shows beside the submodules."""
        sizes = f"width={self.width}, heads={self.heads}, key_width={self.key_width}"
        return f"{self.mechanism.spelled}, {sizes}, causal={self.causal}"


def _load_mechanism(mechanism: Any, key_width: int) -> Mechanism:
    """Return the mechanism; a module itself is called instead of a copy, so that it trains."""
    # Lazy modules create their weights for the width of the first call.
    loaded = mechanism_from(mechanism, width=key_width if is_lazy(mechanism) else None)
    return loaded.trained() if isinstance(loaded, CustomMechanism) else loaded


def _check_constants(mechanism: Mechanism) -> None:
    """Refuse a constant for an extra that the layer learns: it would have no effect."""
    parameters = mechanism.parameters
    for extra in mechanism.extras:
        name = extra.parameter or extra.name
        values, defaults = parameters.as_json(), type(parameters)().as_json()
        if name in parameters.model_fields_set and values[name] != defaults[name]:
            raise UsageError(
                f"{mechanism.spelled}: a layer learns {extra.name} for each token or head, so {name}="
                f"{values[name]} would have no effect; leave it out"
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_natural(**sizes: Any) -> None:
    """Raise a UsageError unless all sizes are whole numbers, 1 or more."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"{name}={value} must be a whole number, 1 or more")


@contextmanager
def _fork_generator(seed: int) -> Iterator[None]:
    """Seed torch's global generators within the block, and restore their states afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _check(width: Any, heads: Any, key_width: Any, rope: Any, conv: Any, length: Any) -> None:
    check_natural(width=width, heads=heads)
    optional = {"key_width": key_width, "conv": conv, "length": length}
    check_natural(**{name: x for name, x in optional.items() if x is not None})
    if width % heads:
        raise UsageError(f"width={width} cannot be divided among heads={heads}; it must be a multiple")
    if rope is None:
        return
    if not _is_number(rope) or not 0 < rope < math.inf:
        raise UsageError(f"rope={rope} is no base of rotary positions; write for example rope=10000")
    key, subject = key_width, f"key_width={key_width}"
    if key is None:
        key, subject = (width // heads, f"width={width} with heads={heads} leaves a head {width // heads}, which")
    if key % 2:
        raise UsageError(f"rotary positions rotate pairs of channels; {subject} is odd")


def _check_causal(mechanism: Mechanism, causal: Any) -> None:
    if not isinstance(causal, bool):
        raise UsageError(f"causal={causal} must be True or False")
    if causal and mechanism.causality is Causality.NEVER:
        raise UsageError(f"{mechanism.spelled} has no causal form; make the layer with causal=False")
    if not causal and mechanism.causality is Causality.ALWAYS:
        raise UsageError(f"{mechanism.spelled} only looks back; make the layer with causal=True")
