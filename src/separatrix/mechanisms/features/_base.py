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
from typing import ClassVar, Literal

from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    check_request,
    divided,
    widened,
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

    @property
    def normalised(self) -> bool:
        return bool(self.parameters.normalised)

    @abstractmethod
    def features(self, x: Tokens, side: Side) -> Features:
        """phi, of each token by itself."""

    def scaled(self, x: Tokens, side: Side) -> Scaled:
        """phi as factors and logarithms."""
        return self.features(x, side), None

    def placed(self, q: Queries, k: Keys) -> tuple[Tensor, Tensor]:
        """Queries and keys with their places worked in, for maps that use them."""
        return q, k

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        check(self, q, k, counts, causal)
        q, k = self.placed(q, k)
        scores = self.features(q, "query") @ self.features(k, "key").mT
        if counts is not None:
            scores = scores * counts[..., None, :]
        if causal:
            scores = scores.tril()
        return divided(scores @ v, scores.sum(-1, keepdim=True)) if self.normalised else scores @ v

    def __call__(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        counts: Counts | None = None,
        causal: bool = False,
        chunk: int = CHUNK,
    ) -> Attended:
        """`phi(q) (phi(k)ᵀ v) / phi(q) (phi(k)ᵀ 1)`; the features of few tokens are held at a time."""
        check(self, q, k, counts, causal)
        if chunk < 1:
            raise UsageError(f"chunk={chunk} is out of range; a chunk holds at least one token")
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        q, k = self.placed(q, k)
        memory = Memory(self.scaled(k[..., :1, :], "key"), v.shape[-1], self.normalised)
        if causal:
            rows = list(self._past(memory, q, k, v, chunk, tokens_at_once(memory.sums, chunk)))
        else:
            rows = list(self._all(memory, q, k, v, counts))
        return (rows[0] if len(rows) == 1 else torch.cat(rows, dim=-2)).to(dtype)

    def _all(
        self, memory: Memory, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None
    ) -> Iterator[Tensor]:
        step = max(1, CACHED // memory.sums[..., 0].numel())
        for start in range(0, k.shape[-2], step):
            block = slice(start, start + step)
            key, some = self.scaled(k[..., block, :], "key"), None
            if counts is not None:
                some = counts[..., block].to(v.dtype)
                key = without_absent(key, some)
            memory.measure_by(key)
            memory.add(memory.keys(key), v[..., block, :], some)
        for start in range(0, q.shape[-2], step):
            phi, top = memory.queries(self.scaled(q[..., start : start + step, :], "query"))
            yield memory.read(phi, top)

    def _past(
        self, memory: Memory, q: Tensor, k: Tensor, v: Tensor, chunk: int, run: int
    ) -> Iterator[Tensor]:
        for start in range(0, q.shape[-2], run):
            here = slice(start, start + run)
            key = self.scaled(k[..., here, :], "key")
            memory.measure_by(first(key))
            size = v[..., here, :].shape[-2]
            if size > 1 and memory.surged(key):
                inner = q[..., here, :], k[..., here, :], v[..., here, :]
                yield from self._past(memory, *inner, chunk, -(-size // 2))
                continue
            phi, top = memory.queries(self.scaled(q[..., here, :], "query"))
            yield memory.pass_by(phi, top, memory.keys(key), v[..., here, :], chunk)
            memory.measure_by(key)


class LogFeatureMechanism(FeatureMechanism):
    """Features `factors * exp(logs)`, with logs too large to take exp of.

    Normalised, every logit is borne. With normalised=no the sums are taken as safely and multiplied
    back: the result is infinite, or not a number, where its true size is beyond the number format.
    """

    @abstractmethod
    def scaled(self, x: Tokens, side: Side) -> Scaled: ...

    def features(self, x: Tokens, side: Side) -> Features:
        return product(*self.scaled(x, side))

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        """The quadratic form over a common reference; a causal row is one over the keys it sees."""
        check(self, q, k, counts, causal)
        if causal:
            seen = [
                (q[..., i : i + 1, :], k[..., : i + 1, :], v[..., : i + 1, :]) for i in range(q.shape[-2])
            ]
            return torch.cat([self.definition(*row) for row in seen], dim=-2)
        key = self.scaled(k, "key")
        if counts is not None:
            key = without_absent(key, counts)
        memory = Memory(key, 0, self.normalised)
        memory.measure_by(key)
        phi, top = memory.queries(self.scaled(q, "query"))
        scores = phi @ memory.keys(key).mT
        if counts is not None:
            scores = scores * counts[..., None, :]
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

    def keys(self, key: Scaled) -> Tensor:
        """phi(k), in units of the reference."""
        factors, logs = key
        return product(factors, None if logs is None or self.reference is None else logs - self.reference)

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

    def add(self, keys: Tensor, values: Tensor, counts: Tensor | None = None) -> None:
        """Add keys to the memory."""
        if counts is not None:
            keys = keys * counts[..., None]
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


def check(mechanism: Mechanism, q: Tensor, k: Tensor, counts: Tensor | None, causal: bool) -> None:
    """Refuse a request that feature maps do not serve, in one line."""
    check_request(mechanism, counts, causal)
    if causal and q.shape[-2] != k.shape[-2]:
        numbers = f"{q.shape[-2]} and {k.shape[-2]}"
        raise UsageError(f"causal needs as many queries as keys, not {numbers}: row i sees keys up to i")


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


def without_absent(key: Scaled, counts: Tensor) -> Scaled:
    """Keys that stand for no token at all are no reference for the others."""
    factors, logs = key
    if logs is not None:
        logs = logs.masked_fill(counts[..., None] == 0, torch.finfo(logs.dtype).min / 4)
    return factors, logs


def finished(read: Tensor, total: Tensor | None, top: Tensor | None) -> Tensor:
    """The output divided by its total, in place, or if there is none back in its own units."""
    if total is not None:
        return read.div_(total.masked_fill(total == 0, torch.inf))
    return read if top is None else read * top.exp()
