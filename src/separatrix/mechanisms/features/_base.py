"""What feature-map attention is: scores that are inner products, `<phi(q), phi(k)>`.

Since a score factors, no score matrix is needed: `phi(q) (phi(k)ᵀ v)` is linear in the tokens. With
`causal` the tokens go by in chunks, quadratic within a chunk, with a running sum over those before. Features
of a few tokens are held at a time, by backward too, which computes them again.

Features that grow like exp come as factors and logarithms (`LogFeatureMechanism`). Keys are then
measured against the largest logarithm so far, feature by feature, and queries against their own
largest: both cancel in the quotient, so that large logits neither overflow nor vanish.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, Literal

from separatrix.core.parameters import Flag, Parameters, UsageError
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Mechanism,
    Present,
    Queries,
    Values,
    divided,
    divisor,
    form,
    seen_keys,
)
from separatrix.mechanisms._recomputed import Out, is_transformed
from separatrix.mechanisms._request import alike, filled, full_precision
from separatrix.mechanisms._running import CACHED, parts, running, tokens_at_once, with_one
from separatrix.mechanisms.decoding import Answered, Past, Pending, count_read, fill_missing_extras

CHUNK = 64
"""Tokens taken at once by the causal form."""

INFERENCE_SHARE = 2
"""Without gradients, blocks are this many times smaller, so that features stay in the cache."""

PIECE = 1024
"""Tokens of a single head in one product of queries or keys, without gradients."""

SURGE = 40.0
"""How far, in logarithms, keys of one chunk may exceed the reference; more, and the chunk is halved."""

Side = Literal["query", "key"]
Tokens = Float[Tensor, "batch heads tokens width"]
Features = Float[Tensor, "batch heads tokens features"]
Scaled = tuple[Tensor | None, Tensor | None]
"""Factors and logarithms of features, `factors * exp(logs)`; None for a factor 1 or a logarithm 0."""
QueryParts = Float[Tensor, "batch heads parts queries width"]
KeyParts = Float[Tensor, "batch heads parts keys width"]
Times = Float[Tensor, "*#heads keys 1"]
Kept = tuple[Tensor, Tensor | None]
"""The sums of a `Memory`, and its reference, if there are logarithms."""


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
    takes_first: ClassVar[bool] = True
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
        first, present = more.pop("first", 0), more.pop("present", None)
        check(self, q, k, causal, first)
        q, k = self.mapped(q, k, more)
        scores = self.features(q, "query") @ self.features(k, "key").mT
        if counts is not None:
            scores = scores * counts[..., None, :]
        seen = seen_keys(range(q.shape[-2]), k, causal, first, present)
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
        first = more.pop("first", 0)
        check(self, q, k, causal, first)
        if chunk < 1:
            raise UsageError(f"chunk={chunk} is out of range; a chunk holds at least one token")
        times = times_there(k, counts, more.pop("present", None))
        q, k = self.mapped(q, k, more)
        memory = Memory.empty(self.scaled(k[..., :1, :], "key"), v.shape[-1], self.normalised)
        if not causal:
            return self._all(memory, q, k, v, times)
        if first:
            before, times = cut(times, first)
            self._take_in(memory, k[..., :first, :], v[..., :first, :], before)
            k, v = k[..., first:, :], v[..., first:, :]
        return joined(list(self._past(memory, q, k, v, times, chunk)))

    @property
    def sums_up(self) -> bool:
        """Whether tokens to come need `sum phi(k)ᵀ v` alone of those before: if no place is worked in."""
        return self.permutation_equivariant and self.length_free

    @property
    def fixed_state(self) -> bool:
        return self.sums_up

    def example_state(self, tokens: int, k: Keys, v: Values) -> tuple[Tensor, ...]:
        return self.remembered(k, v)

    def decode(
        self,
        past: Past | None,
        q: Queries,
        k: Keys,
        v: Values,
        present: Present | None = None,
        *,
        skipped: int = 0,
        **extras: Any,
    ) -> tuple[Answered, Past]:
        """From the sums, if it `sums_up`."""
        if not self.sums_up:
            return super().decode(past, q, k, v, present, skipped=skipped, **extras)
        return decode_from_sums(self, self, past, q, k, v, present, skipped, extras)

    def remembered(
        self, k: Keys, v: Values, present: Tensor | None = None, **extras: Any
    ) -> tuple[Tensor, ...]:
        """What tokens to come need of these, if it `sums_up`: of a size that does not grow with them."""
        with full_precision(v):
            _, k, v, times, _ = self._ready(k, k, v, present, extras)
            memory = Memory.empty(self.scaled(k[..., :1, :], "key"), v.shape[-1], self.normalised)
            for block in blocks(max(1, CACHED // max(1, memory.sums[..., 0].numel())), k, v, times):
                memory.join(Memory(self.normalised, *self._taken(*block)))
        return tuple(each for each in memory.kept if each is not None)

    def read_on(
        self,
        state: Sequence[Tensor],
        q: Queries,
        k: Keys,
        v: Values,
        present: Tensor | None = None,
        **extras: Any,
    ) -> tuple[Attended, tuple[Tensor, ...]]:
        """What tokens get after those that are `remembered`, and what is remembered after them."""
        with full_precision(v):
            q, k, v, times, dtype = self._ready(q, k, v, present, extras)
            sums, reference = (*state, None)[:2]
            out, *kept = self._passed(CHUNK, q, k, v, times, sums, reference)
        return out.to(dtype), tuple(each for each in kept if each is not None)

    def _ready(
        self, q: Tensor, k: Tensor, v: Tensor, present: Tensor | None, extras: dict[str, Any]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, torch.dtype]:
        """Tokens with their maps worked in, how often each is there, and the dtype of what comes out."""
        dtype, (q, k, v) = v.dtype, alike(q, k, v)
        if present is not None:
            k, v = (x.masked_fill(~present[:, None, :, None], 0) for x in (k, v))
        q, k = self.mapped(q, k, filled(self, q, k, v, extras))
        return q, k, v, times_there(k, None, present), dtype

    def kernel(self, q: QueryParts, k: KeyParts) -> Float[Tensor, "batch heads parts queries keys"] | None:
        """The scores of a few tokens, where they are cheaper to have without their features."""
        return None

    def _all(self, memory: Memory, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None) -> Tensor:
        """Take in every key, then read for every query."""
        plain = memory.reference is None and not torch.is_grad_enabled() and not is_transformed()
        if plain and have_equal_heads(q, k, v, times):
            return self._all_in_place(memory, q, k, v, times)
        step = self._take_in(memory, k, v, times)
        rows = [range(start, min(start + step, q.shape[-2])) for start in range(0, q.shape[-2], step)]
        if len(rows) < 2:
            return self._answered(q, *memory.kept)
        if torch.is_grad_enabled() or is_transformed():
            return self.recomputed_by_rows(lambda _, *given: self._answered(*given), rows, q, *memory.kept)
        out = q.new_empty(*q.shape[:-1], v.shape[-1])
        for block in rows:
            phi, top = memory.queries(self.scaled(q[..., block.start : block.stop, :], "query"))
            memory.read(phi, top, out[..., block.start : block.stop, :])
        return out

    def _all_in_place(self, memory: Memory, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None) -> Tensor:
        """`_all` without gradients or logarithms: sums and outputs are written in place.

        Both products run at the speed of the hardware, so that each temporary tensor beside them counts.
        """
        step, sums = block_length(memory), memory.sums.flatten(0, 1)
        values, totals = sums.new_zeros(*sums.shape[:-1], v.shape[-1]), sums.new_zeros(*sums.shape[:-1], 1)
        for some_k, some_v, there in blocks(step, k, v, times):
            phi = memory.keys(self._keys(some_k, there), there).flatten(0, 1)
            pieces = in_pieces(phi)
            products = torch.bmm(pieces.mT, in_pieces(some_v.flatten(0, 1)))
            values += products if pieces is phi else products.sum(0, keepdim=True)
            if self.normalised:
                totals += phi.sum(-2)[..., None]
        out = q.new_empty(*q.shape[:-1], v.shape[-1])
        for some_q, rows in blocks(step, q, out):
            phi, rows = memory.queries(self.scaled(some_q, "query"))[0].flatten(0, 1), rows.flatten(0, 1)
            pieces = in_pieces(phi)
            torch.bmm(pieces, values.expand(len(pieces), -1, -1), out=in_pieces(rows))
            if self.normalised:
                rows /= divisor(phi @ totals)
        return out

    def _take_in(self, memory: Memory, k: Tensor, v: Tensor, times: Tensor | None) -> int:
        """Take in every key, a block of tokens at a time, and return the length of the blocks."""
        step = block_length(memory)
        for block in blocks(step, k, v, times):
            memory.join(Memory(self.normalised, *self._part(self._taken, k.shape[-2] > step, *block)))
        return step

    def _past(
        self, memory: Memory, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None, chunk: int
    ) -> Iterator[Tensor]:
        """For one query after the other, take in its key and read: runs of a few chunks at once."""
        width, features = memory.sums.shape[-2:]
        if k.shape[-2] <= 2 * width and type(self).kernel is not FeatureMechanism.kernel:
            yield from self._scored_past(q, k, v, times, chunk)
            return
        run = tokens_at_once(k.shape[0] * k.shape[1], width, features, chunk)
        kept: list[Any] = list(memory.kept)
        for block in blocks(run, q, k, v, times):
            rows, *kept = self._part(partial(self._passed, chunk), k.shape[-2] > run, *block, *kept)
            yield rows

    def _scored_past(
        self, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None, chunk: int
    ) -> Iterator[Tensor]:
        """The same by scores: of no more keys, on average, than there are features, they are cheaper."""
        for end in range(chunk, k.shape[-2] + chunk, chunk):
            past = [None if x is None else x[..., :end, :] for x in (k, v, times)]
            last = q[..., end - chunk : end, :]
            yield self._part(partial(self._scored, chunk), k.shape[-2] > chunk, last, *past)

    def _scored(self, chunk: int, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None) -> Tensor:
        """What a chunk of queries reads from the keys up to it, one chunk of them after the other."""
        values = with_one(v) if self.normalised else v
        total = values.new_zeros(*q.shape[:-1], values.shape[-1])
        for place in range(0, k.shape[-2], chunk):
            keys, some = k[..., place : place + chunk, :], values[..., place : place + chunk, :]
            scores = self.kernel(q[..., None, :, :], keys[..., None, :, :])
            assert scores is not None
            scores = scores[..., 0, :, :]
            if times is not None:
                scores = scores * times[..., place : place + chunk, :].mT
            if place + chunk >= k.shape[-2]:
                scores = scores.tril()
            total = total + scores @ some
        return divided(total[..., :-1], total[..., -1:]) if self.normalised else total

    def _taken(self, k: Tensor, v: Tensor, times: Tensor | None) -> Kept:
        """A memory of some keys."""
        key = self._keys(k, times)
        memory = Memory.empty(key, v.shape[-1], self.normalised)
        memory.measure_by(key)
        memory.add(memory.keys(key, times), v)
        return memory.kept

    def _answered(self, q: Tensor, *kept: Any) -> Tensor:
        """What some queries read from a memory."""
        memory = Memory(self.normalised, *kept)
        return memory.read(*memory.queries(self.scaled(q, "query")))

    def _passed(
        self, chunk: int, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None, *kept: Any
    ) -> tuple[Any, ...]:
        """What some tokens read, and the memory after them."""
        memory = Memory(self.normalised, *kept)
        return joined(list(self._run(memory, q, k, v, times, chunk))), *memory.kept

    def _run(
        self, memory: Memory, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None, chunk: int
    ) -> Iterator[Tensor]:
        """One run, or where its keys grow too fast to be measured by its first, one half after the other."""
        key = self._keys(k, times)
        memory.measure_by(first(key))
        if k.shape[-2] > 1 and memory.surged(key):
            for q_half, k_half, v_half, there in blocks(-(-k.shape[-2] // 2), q, k, v, times):
                yield from self._run(memory, q_half, k_half, v_half, there, chunk)
            return
        phi, top = memory.queries(self.scaled(q, "query"))
        yield memory.pass_by(phi, top, memory.keys(key, times), v, chunk, self._near(q, k, times, chunk))
        memory.measure_by(key)

    def _keys(self, k: Tensor, times: Tensor | None) -> Scaled:
        """The features of some keys; those that are not there are no reference for others."""
        key = self.scaled(k, "key")
        return key if times is None else without_absent(key, times)

    def _near(self, q: Tensor, k: Tensor, times: Tensor | None, chunk: int) -> Tensor | None:
        """The scores within chunks, if they are to be had without features."""
        scores = self.kernel(parts(q, chunk), parts(k, chunk))
        if scores is None or times is None:
            return scores
        return scores * parts(times.expand(*k.shape[:-1], 1), chunk).mT

    def _part(self, part: Callable[..., Out], again: bool, *inputs: Tensor | None) -> Out:
        """A part of the tokens, computed again by backward if it is one of several."""
        return self.recomputed(part, *inputs) if again else part(*inputs)


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
        first = more.pop("first", 0)
        check(self, q, k, causal, first)
        times = times_there(k, counts, more.pop("present", None))
        q, k = self.mapped(q, k, more)
        if not causal:
            return self._whole(q, k, v, times)
        rows = []
        for i in range(q.shape[-2]):
            end = first + i + 1
            past, _ = cut(times, end)
            rows.append(self._whole(q[..., i : i + 1, :], k[..., :end, :], v[..., :end, :], past))
        return torch.cat(rows, dim=-2)

    def _whole(self, q: Tensor, k: Tensor, v: Tensor, times: Tensor | None) -> Tensor:
        """The quadratic form, where every query sees every key that is there."""
        key = self._keys(k, times)
        memory = Memory.empty(key, 0, self.normalised)
        memory.measure_by(key)
        phi, top = memory.queries(self.scaled(q, "query"))
        scores = phi @ memory.keys(key, times).mT
        if self.normalised:
            return divided(scores @ v, scores.sum(-1, keepdim=True))
        return scores @ v if top is None else (scores @ v) * top.exp()


class Memory:
    """`sum phi(k)ᵀ v` over the keys so far, each feature in units of `exp(reference)`.

    To divide rows by the sum of their scores, there is a column of ones beside the values. References are
    constants to differentiation: results do not depend on them. The reference is always that of a key
    already seen, so a normaliser of positive features never vanishes.
    """

    def __init__(self, normalised: bool, sums: Tensor, reference: Tensor | None) -> None:
        self.normalised, self.sums = normalised, sums
        self.reference = None if reference is None else reference.detach()

    @classmethod
    def empty(cls, key: Scaled, values: int, normalised: bool = True) -> Memory:
        """Of keys such as these, nothing yet."""
        factors, logs = key
        some = logs if factors is None else factors
        assert some is not None
        sums = some.new_zeros(*some.shape[:-2], some.shape[-1], values + normalised)
        return cls(normalised, sums, None if logs is None else torch.full_like(logs[..., :1, :], -torch.inf))

    @property
    def kept(self) -> Kept:
        """What it is made of."""
        return self.sums, self.reference

    def measure_by(self, key: Scaled) -> None:
        """Let the reference be at least the logarithms of these keys."""
        if key[1] is not None:
            self._measure(key[1].detach().amax(-2, keepdim=True))

    def _measure(self, least: Tensor) -> None:
        if self.reference is None:
            return
        reference = torch.maximum(self.reference, least)
        scale = (self.reference - reference).exp().mT
        self.sums, self.reference = self.sums * scale, reference

    def surged(self, key: Scaled) -> bool:
        """Whether keys exceed the reference by more than a sum can bear."""
        if self.reference is None or key[1] is None:
            return False
        return bool((key[1].detach() - self.reference).amax() > SURGE)

    def keys(self, key: Scaled, times: Tensor | None = None) -> Tensor:
        """phi(k), in units of the reference, as often as each key is there."""
        factors, logs = key
        phi = product(factors, None if logs is None or self.reference is None else logs - self.reference)
        return phi if times is None else phi * times

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
        return phi, None if self.normalised else logs.logsumexp(-1, keepdim=True)

    def add(self, keys: Tensor, values: Tensor) -> None:
        """Add keys to the memory."""
        sums = keys.mT @ values
        if self.normalised:
            sums = torch.cat([sums, keys.sum(-2)[..., None]], dim=-1)
        self.sums = self.sums + sums

    def join(self, other: Memory) -> None:
        """Take in what another has taken in."""
        if other.reference is not None and self.reference is not None:
            self._measure(other.reference)
            other._measure(self.reference)
        self.sums = self.sums + other.sums

    def read(self, phi: Tensor, top: Tensor | None, out: Tensor | None = None) -> Tensor:
        """What queries get from the keys taken in, written to `out` if it is given."""
        if not self.normalised:
            read = torch.matmul(phi, self.sums, out=out)
            return read if top is None else torch.mul(read, top.exp(), out=out)
        # Two products, since one with a single column more takes half as long again.
        read = torch.matmul(phi, self.sums[..., :-1].contiguous(), out=out)
        return torch.div(read, divisor(phi @ self.sums[..., -1:].contiguous()), out=out)

    def pass_by(
        self,
        phi: Tensor,
        top: Tensor | None,
        keys: Tensor,
        values: Tensor,
        chunk: int,
        scores: Tensor | None = None,
    ) -> Tensor:
        """Take keys in one by one, and read after each; scores within chunks may be given."""
        values = with_one(values) if self.normalised else values
        self.sums, read = running(self.sums, phi, keys, values, chunk, scores)
        return self._finished(read, top)

    def _finished(self, read: Tensor, top: Tensor | None) -> Tensor:
        """The output divided by its total, or if there is none back in its own units."""
        if self.normalised:
            return divided(read[..., :-1], read[..., -1:])
        return read if top is None else read * top.exp()


def decode_from_sums(
    mechanism: Mechanism,
    features: FeatureMechanism,
    past: Past | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    present: Tensor | None,
    skipped: int,
    extras: dict[str, Any],
) -> tuple[Tensor, Past]:
    """Decode a mechanism whose scores are those of `features`, from their sums.

    The first tokens are read by the mechanism itself, and added up only if others follow.
    """
    read = count_read(past, k, present)
    if past is not None:
        out, state = features.read_on(past.state, q, k, v, present, **extras)
        return out[..., skipped:, :], Past(read, state=state)
    extras = fill_missing_extras(mechanism, q, k, v, extras)
    out = mechanism(q[..., skipped:, :], k, v, causal=True, first=skipped, present=present, **extras)
    return out, Past(read, state=Pending(partial(features.remembered, k, v, present, **extras)))


def check(mechanism: Mechanism, q: Tensor, k: Tensor, causal: bool, first: int = 0) -> None:
    """Refuse a request that feature maps do not serve, in one line."""
    if causal and first + q.shape[-2] != k.shape[-2]:
        numbers = f"{first + q.shape[-2]} and {k.shape[-2]}"
        raise UsageError(f"causal needs as many queries as keys, not {numbers}: row i sees keys up to i")


def block_length(memory: Memory) -> int:
    """The number of tokens whose features are held at once."""
    cached = CACHED if torch.is_grad_enabled() else CACHED // INFERENCE_SHARE
    return max(1, cached // max(1, memory.sums[..., 0].numel()))


def blocks(step: int, *tensors: Tensor | None) -> Iterator[tuple[Any, ...]]:
    """Some tokens after the other, of each of the tensors."""
    return zip(*(repeat(None) if x is None else torch.split(x, step, dim=-2) for x in tensors), strict=False)


def have_equal_heads(q: Tensor, k: Tensor, v: Tensor, times: Tensor | None) -> bool:
    """Whether no batch element or head of one tensor is shared by several of another."""
    leading = k.shape[:-2]
    if not q.shape[:-2] == leading == v.shape[:-2]:
        return False
    if times is None:
        return True
    shared = torch.broadcast_shapes(leading, times.shape[:-2])  # type: ignore[no-untyped-call]
    return bool(shared == leading)


def in_pieces(x: Float[Tensor, "heads tokens width"]) -> Float[Tensor, "pieces tokens_of_a_piece width"]:
    """Cut the tokens of a single head into pieces, so that threads compute separate products.

    Products of several heads are separate anyway, and tokens that pieces do not divide stay as they are.
    """
    heads, tokens, width = x.shape
    return x.view(-1, PIECE, width) if heads == 1 and tokens and tokens % PIECE == 0 else x


def joined(rows: list[Tensor]) -> Tensor:
    """Rows of outputs, end to end."""
    return rows[0] if len(rows) == 1 else torch.cat(rows, dim=-2)


def times_there(k: Keys, counts: Counts | None, present: Tensor | None) -> Times | None:
    """How often each key is there: its count, or 0 where it is absent."""
    if present is None:
        return None if counts is None else counts.to(k.dtype)[..., None]
    there = present[:, None, :, None].to(k.dtype)
    return there if counts is None else there * counts.to(k.dtype)[..., None]


def cut(times: Tensor | None, place: int) -> tuple[Tensor | None, Tensor | None]:
    """How often keys are there, of those before a place and of those from there on."""
    return (None, None) if times is None else (times[..., :place, :], times[..., place:, :])


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


def without_absent(key: Scaled, times: Times) -> Scaled:
    """Keys that stand for no token at all are no reference for the others."""
    factors, logs = key
    if logs is not None:
        logs = logs.masked_fill(times == 0, torch.finfo(logs.dtype).min / 4)
    return factors, logs
