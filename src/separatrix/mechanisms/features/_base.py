"""What feature-map attention is: scores that are inner products, `<phi(q), phi(k)>`.

Since a score factors, no score matrix is needed: `phi(q) (phi(k)ᵀ v)` is linear in the tokens. With
`causal` the tokens go by in chunks, quadratic within a chunk, with a running sum over those before.

Features that grow like exp come as factors and logarithms (`LogFeatureMechanism`). Keys are then
measured against the largest logarithm so far, feature by feature, and queries against their own
largest: both cancel in the quotient, so that large logits neither overflow nor vanish.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    divided,
    form,
    seen_keys,
)
from separatrix.mechanisms._running import CACHED, running, tokens_at_once
from separatrix.parameters import Flag, Parameters, UsageError
from separatrix.tensors import Float, Tensor, torch

CHUNK = 64
"""Tokens taken at once by the causal form."""

SURGE = 40.0
"""How far, in logarithms, keys of one chunk may exceed the reference; more, and the chunk is halved."""

Side = Literal["query", "key"]
Tokens = Float[Tensor, "batch heads tokens width"]
Features = Float[Tensor, "batch heads tokens features"]
Scaled = tuple[Tensor | None, Tensor | None]
"""Factors and logarithms of features, `factors * exp(logs)`; None for a factor 1 or a logarithm 0."""


class FeatureParameters(Parameters):
    """Whether the weights of a row are divided by their sum."""

    owner = "this feature map"
    normalised: Flag = True


class FeatureMechanism(Mechanism):
    """`u = <phi(q), phi(k)>`, `f = u / <u,1>`, or `f = u` with normalised=no.

    A row whose scores add up to exactly 0 has no average: its result is 0, and so are its gradients.
    """

    family = "feature map"
    schema: ClassVar[type[Parameters]] = FeatureParameters
    takes_present: ClassVar[bool] = True

    @property
    def normalised(self) -> bool:
        return bool(self.parameters.normalised)

    @abstractmethod
    def features(self, x: Tokens, side: Side) -> Features:
        """phi, of each token by itself."""

    def scaled(self, x: Tokens, side: Side) -> Scaled:
        """phi as factors and logarithms."""
        return self.features(x, side), None

    def mapped(self, q: Queries, k: Keys, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Queries and keys with their places, or learned maps, worked in."""
        return q, k

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check(self, q, k, causal)
        present = more.pop("present", None)
        q, k = self.mapped(q, k, more)
        scores = self.features(q, "query") @ self.features(k, "key").mT
        if counts is not None:
            scores = scores * counts[..., None, :]
        seen = seen_keys(range(q.shape[-2]), k, causal, present=present)
        if seen is not None:
            scores = scores.where(seen, 0)
        return divided(scores @ v, scores.sum(-1, keepdim=True)) if self.normalised else scores @ v

    @form
    def __call__(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        counts: Counts | None = None,
        causal: bool = False,
        *,
        chunk: int = CHUNK,
        **more: Any,
    ) -> Attended:
        """`phi(q) (phi(k)ᵀ v) / phi(q) (phi(k)ᵀ 1)`; the features of few tokens are held at a time."""
        check(self, q, k, causal)
        if chunk < 1:
            raise UsageError(f"chunk={chunk} is out of range; a chunk holds at least one token")
        times = times_there(k, counts, more.pop("present", None))
        q, k = self.mapped(q, k, more)
        memory = Memory(self.scaled(k[..., :1, :], "key"), v.shape[-1], self.normalised)
        if causal:
            rows = list(self._past(memory, q, k, v, times, chunk, tokens_at_once(memory.sums, chunk)))
        else:
            rows = list(self._all(memory, q, k, v, times))
        return rows[0] if len(rows) == 1 else torch.cat(rows, dim=-2)

    def _all(self, memory: Memory, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None) -> Iterator[Tensor]:
        step = max(1, CACHED // memory.sums[..., 0].numel())
        for start in range(0, k.shape[-2], step):
            block = slice(start, start + step)
            key, some = self._keys(k, times, block)
            memory.measure_by(key)
            memory.add(memory.keys(key, some), v[..., block, :])
        for start in range(0, q.shape[-2], step):
            phi, top = memory.queries(self.scaled(q[..., start : start + step, :], "query"))
            yield memory.read(phi, top)

    def _past(
        self, memory: Memory, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None, chunk: int, run: int
    ) -> Iterator[Tensor]:
        for start in range(0, q.shape[-2], run):
            here = slice(start, start + run)
            key, some = self._keys(k, times, here)
            memory.measure_by(first(key))
            size = v[..., here, :].shape[-2]
            if size > 1 and memory.surged(key):
                inner = q[..., here, :], k[..., here, :], v[..., here, :], some
                yield from self._past(memory, *inner, chunk, -(-size // 2))
                continue
            phi, top = memory.queries(self.scaled(q[..., here, :], "query"))
            yield memory.pass_by(phi, top, memory.keys(key, some), v[..., here, :], chunk)
            memory.measure_by(key)

    def _keys(self, k: Tensor, times: Tensor | None, block: slice) -> tuple[Scaled, Tensor | None]:
        """The features of some keys, and how often each is there."""
        key = self.scaled(k[..., block, :], "key")
        if times is None:
            return key, None
        return without_absent(key, times[..., block]), times[..., block]


class LogFeatureMechanism(FeatureMechanism):
    """Features `factors * exp(logs)`, with logs too large to take exp of.

    Normalised, every logit is borne. With normalised=no the sums are taken as safely and multiplied
    back: the result is infinite, or not a number, where its true size is beyond the number format.
    """

    @abstractmethod
    def scaled(self, x: Tokens, side: Side) -> Scaled: ...

    def features(self, x: Tokens, side: Side) -> Features:
        return product(*self.scaled(x, side))

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """The quadratic form over a common reference; a causal row is one over the keys it sees."""
        check(self, q, k, causal)
        times = times_there(k, counts, more.pop("present", None))
        q, k = self.mapped(q, k, more)
        if not causal:
            return self._whole(q, k, v, times)
        rows = []
        for i in range(q.shape[-2]):
            past = None if times is None else times[..., : i + 1]
            rows.append(self._whole(q[..., i : i + 1, :], k[..., : i + 1, :], v[..., : i + 1, :], past))
        return torch.cat(rows, dim=-2)

    def _whole(self, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None) -> Tensor:
        """The quadratic form, where every query sees every key that is there."""
        key, times = self._keys(k, times, slice(None))
        memory = Memory(key, 0, self.normalised)
        memory.measure_by(key)
        phi, top = memory.queries(self.scaled(q, "query"))
        scores = phi @ memory.keys(key, times).mT
        if self.normalised:
            return divided(scores @ v, scores.sum(-1, keepdim=True))
        return scores @ v if top is None else (scores @ v) * top.exp()


class Memory:
    """`sum phi(k)ᵀ v` and `sum phi(k)` over the keys so far, each feature in units of `exp(reference)`.

    References are constants to differentiation: results do not depend on them. The reference is
    always that of a key already seen, so a normaliser of positive features never vanishes.
    """

    def __init__(self, key: Scaled, values: int, normalised: bool = True) -> None:
        factors, logs = key
        some = logs if factors is None else factors
        assert some is not None
        self.sums = some.new_zeros(*some.shape[:-2], some.shape[-1], values)
        self.totals = some.new_zeros(*some.shape[:-2], some.shape[-1], 1) if normalised else None
        self.reference = None if logs is None else torch.full_like(logs[..., :1, :], -torch.inf).detach()

    def measure_by(self, key: Scaled) -> None:
        """Let the reference be at least the logarithms of these keys."""
        if self.reference is None or key[1] is None:
            return
        reference = torch.maximum(self.reference, key[1].detach().amax(-2, keepdim=True))
        scale = (self.reference - reference).exp().mT
        self.sums, self.reference = self.sums * scale, reference
        if self.totals is not None:
            self.totals = self.totals * scale

    def surged(self, key: Scaled) -> bool:
        """Whether keys exceed the reference by more than a sum can bear."""
        if self.reference is None or key[1] is None:
            return False
        return bool((key[1].detach() - self.reference).amax() > SURGE)

    def keys(self, key: Scaled, times: Tensor | None = None) -> Tensor:
        """phi(k), in units of the reference, as often as each key is there."""
        factors, logs = key
        phi = product(factors, None if logs is None or self.reference is None else logs - self.reference)
        return phi if times is None else phi * times[..., None]

    def queries(self, query: Scaled) -> tuple[Tensor, Tensor | None]:
        """phi(q) such that its product with phi(k), times exp of the second result, is the score.

        Logarithms are measured against their own log-sum-exp, which cancels where rows are divided by
        their sums.
        """
        factors, logs = query
        if logs is None or self.reference is None:
            return product(factors, None), None
        logs = logs + self.reference
        phi = logs.softmax(-1) if factors is None else logs.softmax(-1) * factors
        return phi, logs.logsumexp(-1, keepdim=True) if self.totals is None else None

    def add(self, keys: Tensor, values: Tensor) -> None:
        """Add keys to the memory."""
        self.sums = self.sums + keys.mT @ values
        if self.totals is not None:
            self.totals = self.totals + keys.sum(-2, keepdim=True).mT

    def read(self, phi: Tensor, top: Tensor | None) -> Tensor:
        """What queries get from the keys taken in."""
        return finished(phi @ self.sums, None if self.totals is None else phi @ self.totals, top)

    def pass_by(self, phi: Tensor, top: Tensor | None, keys: Tensor, values: Tensor, chunk: int) -> Tensor:
        """Take keys in one by one, and read after each."""
        found = running(self.sums, self.totals, phi, keys, values, chunk)
        self.sums, self.totals = found.sums, found.totals
        return finished(found.read, found.total, top)


def check(mechanism: Mechanism, q: Tensor, k: Tensor, causal: bool) -> None:
    """Refuse a request that feature maps do not serve, in one line."""
    if causal and q.shape[-2] != k.shape[-2]:
        numbers = f"{q.shape[-2]} and {k.shape[-2]}"
        raise UsageError(f"causal needs as many queries as keys, not {numbers}: row i sees keys up to i")


def times_there(k: Keys, counts: Counts | None, present: Tensor | None) -> Counts | None:
    """How often each key is there: its count, or 0 where it is absent."""
    if present is None:
        return None if counts is None else counts.to(k.dtype)
    there = present[:, None, :].to(k.dtype)
    return there if counts is None else there * counts.to(k.dtype)


def product(factors: Tensor | None, logs: Tensor | None) -> Tensor:
    """`factors * exp(logs)`."""
    if logs is None:
        assert factors is not None
        return factors
    return logs.exp() if factors is None else factors * logs.exp()


def first(key: Scaled) -> Scaled:
    """The first key alone, which every row of its chunk sees."""
    factors, logs = (None if x is None else x[..., :1, :] for x in key)
    return factors, logs


def without_absent(key: Scaled, times: Tensor) -> Scaled:
    """Keys that stand for no token at all are no reference for the others."""
    factors, logs = key
    if logs is not None:
        logs = logs.masked_fill(times[..., None] == 0, torch.finfo(logs.dtype).min / 4)
    return factors, logs


def finished(read: Tensor, total: Tensor | None, top: Tensor | None) -> Tensor:
    """The output divided by its total, in place, or if there is none back in its own units."""
    if total is not None:
        return read.div_(total.masked_fill(total == 0, torch.inf))
    return read if top is None else read * top.exp()
