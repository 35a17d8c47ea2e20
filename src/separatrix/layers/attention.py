"""Attention by any mechanism, as a torch module with weights of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Bool, Float, Tensor
from separatrix.layers.cache import Cache
from separatrix.layers.measures import Measured
from separatrix.layers.parts import RMSNorm, ShortConvolution, keeping_size, rotated
from separatrix.mechanisms import Causality, Mechanism, mechanism_from
from separatrix.mechanisms.custom import CustomMechanism
from separatrix.mechanisms.decoding import Past, positions_of
from separatrix.mechanisms.drawn_weights import seed_unless_given
from separatrix.mechanisms.extras import Extra, TokenSizes, describe_value
from separatrix.mechanisms.how_called import is_lazy


class Attention(Measured):
    """Projections to queries, keys and values, a mechanism, and a projection back.

    Mechanisms take plain inner products for logits, without a hidden `1/sqrt(width)`: this layer multiplies
    queries by `scale`. What a mechanism takes beside q, k and v is learned from the tokens by the modules in
    `separatrix.mechanisms.learned`, in the parametrisation and from the initial values of its source paper.
    They draw from a generator of their own, so that for one seed all other weights of a model are equal
    whatever the mechanism.

    A mechanism that is an `nn.Module` is a part of the layer: its weights train, and are saved with it.

    **Arguments:**

    - `mechanism`: a name with parameters (`"power:beta=4"`), `"module:attribute"`, or the thing itself.
    - `width`: of a token; the values of a head have `width / heads` of it.
    - `heads`: how many there are.
    - `key_width`: of the queries and keys of a head; that of its values, `width / heads`, unless given.
    - `causal`: whether a token sees only itself and those before it.
    - `rope`: the base of rotary positions, 10000 in most models; None for none.
    - `conv`: how many tokens a causal convolution on q, k and v mixes, channel by channel; None for none.
    - `qk_norm`: whether queries and keys of each head get a root mean square of 1, times learned weights.
    - `out_norm`: whether what each head returns does, too. The same for all mechanisms: some add up what they
      see and others average, and a comparison without it compares that.
    - `scale`: what queries are multiplied by; `1/sqrt(key_width)` unless given.
    - `length`: the most tokens, for mechanisms with a learned weight for each, as linformer.

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
        _check_scale(scale)
        seed = int(torch.randint(1 << 62, (), device="cpu"))
        with _generator(seed), seed_unless_given(seed):
            self.mechanism = _attending(mechanism, width // heads if key_width is None else key_width)
        _check_constants(self.mechanism)
        _check_causal(self.mechanism, causal)
        self.width, self.heads, self.causal = width, heads, causal
        self.rope, self.length = rope, length
        self.key_width = key = width // heads if key_width is None else key_width
        self.scale = key**-0.5 if scale is None else scale
        self.channels = (heads * key, heads * key, width)
        self.project = keeping_size(nn.Linear(width, sum(self.channels), bias=False))
        self.convolve = None if conv is None else ShortConvolution(sum(self.channels), conv)
        self.query_norm, self.key_norm = (RMSNorm(key) if qk_norm else nn.Identity() for _ in "qk")
        self.out_norm = RMSNorm(width // heads) if out_norm else nn.Identity()
        self.back = nn.Linear(width, width, bias=False)
        with _generator(seed + 1):
            self.learned = nn.ModuleDict(
                {extra.name: extra.make_module(self._sizes(extra)) for extra in self.mechanism.extras}
            )
        if isinstance(self.mechanism, CustomMechanism) and isinstance(self.mechanism.attend, nn.Module):
            self.attend = self.mechanism.attend
        else:
            held = {name: x for name, x in vars(self.mechanism).items() if isinstance(x, nn.Parameter)}
            self.own = nn.ParameterDict(held)

    def forward(
        self,
        x: Float[Tensor, "batch tokens width"],
        present: Bool[Tensor, "batch tokens"] | None = None,
        cache: Cache | None = None,
        last: int | None = None,
    ) -> tuple[Float[Tensor, "batch answered width"], Cache | None]:
        """What the tokens get, and what those after them need to know.

        Absent tokens are as if they had never been, and get 0. With the cache of earlier tokens it goes on
        from there; without `causal` there is no going on, and no cache. No tokens at all leave the cache as
        it was. `last` asks for what so many of the last tokens get, and no others: that is cheaper.
        """
        self._check_input(x, present, cache)
        _check_last(last, x)
        if not x.shape[0] * x.shape[1]:
            return self.back(x if last is None else x[:, x.shape[1] - last :]), cache
        if present is not None:
            if bool(present.all()):
                present = None
            else:
                x = x.masked_fill(~present[..., None], 0)
        extras = {name: module(x) for name, module in self.learned.items()}
        tokens, tail = self.project(x), None
        if self.convolve is not None:
            tokens, tail = self.convolve(tokens, None if cache is None else cache.tail, present)
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in tokens.split(self.channels, dim=-1)
        )
        q, k = self.query_norm(q), self.key_norm(k)
        if self.rope is not None:
            places = positions_of(cache, k, present)
            q, k = (rotated(part, places, self.rope) for part in (q, k))
        first = 0 if last is None else x.shape[1] - last
        out, after = self._attended(self.scale * q, k, v, extras, present, cache, first)
        out = self.back(self.out_norm(out).transpose(1, 2).flatten(2))
        if present is not None:
            out = out.masked_fill(~present[:, first:, None], 0)
        return out, None if after is None else Cache.after(after, tail)

    def _attended(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        extras: dict[str, Any],
        present: Tensor | None,
        cache: Cache | None,
        skipped: int,
    ) -> tuple[Tensor, Past | None]:
        """The mechanism, after what the cache has of earlier tokens; the first queries may be skipped."""
        if self.causal:
            return self.mechanism.decode(cache, q, k, v, present, skipped=skipped, **extras)
        few = self.mechanism.answers_few and self.mechanism.causality is not Causality.NEVER
        first = skipped if few else 0
        out = self.mechanism(q[..., first:, :], k, v, causal=False, first=first, present=present, **extras)
        return out[..., skipped - first :, :], None

    def _sizes(self, extra: Extra) -> TokenSizes:
        """The sizes that a learned extra is made for."""
        key, value = (
            torch.empty(1, self.heads, self.length or 1, size, device="meta")
            for size in (self.key_width, self.width // self.heads)
        )
        sizes = replace(self.mechanism.sizes(key, key, value), model=self.width)
        if self.length is None and not extra.per_token:
            longer = replace(sizes, tokens=sizes.tokens + 1)
            if extra.shape(longer) != extra.shape(sizes):
                raise UsageError(
                    f"{self.mechanism.spelled} learns {extra.name} for each token; say how many there are at "
                    "most: length=…"
                )
        return sizes

    def _check_input(self, x: Any, present: Any, cache: Any) -> None:
        if not isinstance(x, torch.Tensor) or x.ndim != 3 or x.shape[-1] != self.width:
            raise UsageError(f"x must have shape (batch, tokens, {self.width}), not {describe_value(x)}")
        wanted = tuple(x.shape[:2])
        if present is not None and (
            not isinstance(present, torch.Tensor)
            or present.dtype is not torch.bool
            or present.shape != wanted
        ):
            raise UsageError(
                f"present must be bool of shape {wanted}, batch and tokens, not {describe_value(present)}"
            )
        if self.length is not None and x.shape[1] > self.length:
            raise UsageError(f"x has {x.shape[1]} tokens; this layer was made for length={self.length}")
        if cache is None:
            return
        if not self.causal:
            raise UsageError("a layer that is not causal has no cache: tokens to come change those before")
        if not isinstance(cache, Cache) or cache.lengths.shape != x.shape[:1]:
            raise UsageError(f"cache must be what this layer returned for a batch of {x.shape[0]}")
        if not self._returned(cache):
            raise UsageError("cache must be what this layer returned, not one of another mechanism or sizes")

    def _returned(self, cache: Cache) -> bool:
        """Whether a cache is of the kind and sizes that this layer returns."""
        tail = None if cache.tail is None else cache.tail.shape[1:]
        wanted = None if self.convolve is None else (self.convolve.size - 1, sum(self.channels))
        if self.mechanism.fixed_state:
            return bool(cache.state) and cache.keys is None and tail == wanted
        if cache.keys is None or cache.values is None or cache.state:
            return False
        sizes = [(each.shape[1], each.shape[-1]) for each in (cache.keys, cache.values)]
        own = [(self.heads, self.key_width), (self.heads, self.width // self.heads)]
        return sizes == own and set(cache.extras) == set(self.mechanism.token_extras) and tail == wanted

    def state_bytes(self, tokens: int) -> int:
        """The bytes that the cache of one sequence holds after so many tokens: predicted, and exact."""
        if not self.causal:
            raise UsageError("what is not causal carries nothing from token to token")
        if not tokens:
            return 0
        values, dtype = self.width // self.heads, self.project.weight.dtype
        kept = self.mechanism.decoding_memory(tokens, self.heads, self.key_width, values, dtype)
        tail = 0 if self.convolve is None else (self.convolve.size - 1) * sum(self.channels)
        return kept.layer_bytes + tail * dtype.itemsize

    def extra_repr(self) -> str:
        """What torch prints of the layer beside its parts."""
        sizes = f"width={self.width}, heads={self.heads}, key_width={self.key_width}"
        return f"{self.mechanism.spelled}, {sizes}, causal={self.causal}"


def _attending(mechanism: Any, key_width: int) -> Mechanism:
    """The mechanism; a module is called as it is, and not as a copy, so that it trains.

    Weights that its first call makes are made for the width of this layer.
    """
    found = mechanism_from(mechanism, width=key_width if is_lazy(mechanism) else None)
    return found.trained() if isinstance(found, CustomMechanism) else found


def _check_constants(mechanism: Mechanism) -> None:
    """Refuse a constant in the place of what the layer learns: it would change nothing."""
    for extra in mechanism.extras:
        name = extra.parameter or extra.name
        shown = mechanism.parameters.as_json()
        if (
            name in mechanism.parameters.model_fields_set
            and shown[name] != type(mechanism.parameters)().as_json()[name]
        ):
            raise UsageError(
                f"{mechanism.spelled}: a layer has {extra.name} for each token or head, so that {name}="
                f"{shown[name]} would change nothing; leave it out"
            )


def check_natural(**given: Any) -> None:
    """Refuse what is not a whole number of 1 or more, in one line."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"{name}={value} must be a whole number, 1 or more")


@contextmanager
def _generator(seed: int) -> Iterator[None]:
    """Draw from a generator of its own, and leave that of the others as it is."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _check(width: Any, heads: Any, key_width: Any, rope: Any, conv: Any, length: Any) -> None:
    check_natural(width=width, heads=heads)
    optional = {"key_width": key_width, "conv": conv, "length": length}
    check_natural(**{name: x for name, x in optional.items() if x is not None})
    if width % heads:
        raise UsageError(f"width={width} cannot be shared out among heads={heads}; it must be a multiple")
    if rope is None:
        return
    if isinstance(rope, bool) or not isinstance(rope, int | float) or not 0 < rope < math.inf:
        raise UsageError(f"rope={rope} is no base of rotary positions; write for example rope=10000")
    key, said = key_width, f"key_width={key_width}"
    if key is None:
        key, said = width // heads, f"width={width} with heads={heads} leaves a head {width // heads}, which"
    if key % 2:
        raise UsageError(f"rotary positions turn pairs of channels; {said} is odd")


def _check_last(last: Any, x: Tensor) -> None:
    if last is None:
        return
    if isinstance(last, bool) or not isinstance(last, int) or not 0 <= last <= x.shape[1]:
        raise UsageError(f"last={last} must be a number of tokens, from 0 to the {x.shape[1]} of x")


def _check_scale(scale: Any) -> None:
    if scale is None:
        return
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale):
        raise UsageError(f"scale={scale} is no number to multiply queries by; write for example scale=0.125")


def _check_causal(mechanism: Mechanism, causal: Any) -> None:
    if not isinstance(causal, bool):
        raise UsageError(f"causal={causal} must be True or False")
    if causal and mechanism.causality is Causality.NEVER:
        raise UsageError(f"{mechanism.spelled} has no causal form; make the layer with causal=False")
    if not causal and mechanism.causality is Causality.ALWAYS:
        raise UsageError(f"{mechanism.spelled} only looks back; make the layer with causal=True")
