"""Feature-map attention: scores that are inner products, `<phi(q), phi(k)>`.

Since a score factors, no score matrix is needed: `phi(q) (phi(k)ᵀ v)` is linear in the tokens. With `causal`
the tokens are read in chunks, quadratic within a chunk, with a running sum over those before. Features of a
few tokens are held at a time, also by backward, which computes them again.

Features that grow like exp come as factors and logarithms (`LogFeatureMechanism`). Keys are then measured
against the largest logarithm so far, feature by feature, and queries against their own largest: both cancel
in the quotient, so that large logits neither overflow nor vanish.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from separatrix.core.parameters import UsageError, flag
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._blocks import divide, divisor, split_range, split_tokens
from separatrix.mechanisms._methods import attention_method, fill_extras, full_precision, to_common_dtype
from separatrix.mechanisms._positions import zero_absent
from separatrix.mechanisms._recompute import Out, is_transformed
from separatrix.mechanisms._running_sums import MAX_CACHED_NUMBERS, append_ones, split_chunks, tokens_in_cache
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.decoding import Answers, LazyState, NewTokens, Past
from separatrix.mechanisms.features._memory import FeatureMemory, MemoryTensors, ScaledFeatures, multiplicity_of

CHUNK = 64
"""Tokens read at once by the causal form."""
PIECE = 4096
"""Tokens of a single head in one product of queries or keys, without gradients."""

Side = Literal["query", "key"]
Tokens = Float[Tensor, "batch heads tokens width"]
Features = Float[Tensor, "batch heads tokens features"]
QueryChunks = Float[Tensor, "batch heads chunks queries width"]
KeyChunks = Float[Tensor, "batch heads chunks keys width"]


class FeatureMechanism(Mechanism):
    """`u = <phi(q), phi(k)>`, `f = u / <u,1>`, or `f = u` with normalised=no.

    A row whose scores add up to exactly 0 has no average: its output is 0, and so are its gradients.
    """

    family = "feature map"
    takes_first: ClassVar[bool] = True
    takes_present: ClassVar[bool] = True
    normalised: bool = flag(True)
    """Whether the weights of a row are divided by their sum."""

    @property
    def is_normalised(self) -> bool:
        return self.normalised

    @abstractmethod
    def compute_features(self, x: Tokens, side: Side) -> Features:
        """Return phi of each token."""

    def scale_features(self, x: Tokens, side: Side) -> ScaledFeatures:
        """Return phi as factors and logarithms."""
        return ScaledFeatures(self.compute_features(x, side))

    def map_tokens(self, q: Queries, k: Keys, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Apply positions or learned maps to queries and keys."""
        return q, k

    def direct_scores(self, q: QueryChunks, k: KeyChunks) -> Float[Tensor, "batch heads chunks queries keys"] | None:
        """Return the scores of a few tokens, if they are cheaper to compute without features."""
        return None

    def check_lengths(self, queries: int, keys: int, options: CallOptions) -> None:
        if options.causal and options.first + queries != keys:
            raise UsageError(
                f"causal needs as many queries as keys, not {options.first + queries} and {keys}: "
                "row i sees keys up to i"
            )

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        q, k = self.map_tokens(q, k, extras)
        scores = self.compute_features(q, "query") @ self.compute_features(k, "key").mT
        if options.counts is not None:
            scores = scores * options.counts[..., None, :]
        visible = options.visible_keys(range(q.shape[-2]), k)
        scores = scores if visible is None else scores.where(visible, 0)
        return divide(scores @ v, scores.sum(-1, keepdim=True)) if self.is_normalised else scores @ v

    @attention_method
    def __call__(
        self, q: Queries, k: Keys, v: Values, options: CallOptions, *, chunk: int = CHUNK, **extras: Any
    ) -> Attended:
        """Compute `phi(q) (phi(k)ᵀ v) / phi(q) (phi(k)ᵀ 1)` with the features of few tokens at a time."""
        if chunk < 1:
            raise UsageError(f"chunk={chunk} is out of range; a chunk holds at least one token")
        first, multiplicity = options.first, multiplicity_of(k, options.counts, options.present)
        q, k = self.map_tokens(q, k, extras)
        memory = self._empty_memory(k, v)
        if not options.causal:
            return self._attend_to_all(memory, q, k, v, multiplicity)
        # Every query sees the keys before the first one, so their sums are enough.
        if first:
            self._add_keys(memory, *(_slice(x, 0, first) for x in (k, v, multiplicity)))
            k, v, multiplicity = (_slice(x, first, k.shape[-2]) for x in (k, v, multiplicity))
        return self._attend_causally(memory, q, k, v, multiplicity, chunk)

    @property
    def fixed_state(self) -> bool:
        """Whether later tokens need only `sum phi(k)ᵀ v` of those before: if positions have no effect."""
        return self.permutation_equivariant and self.length_free

    def example_state(self, tokens: int, k: Keys, v: Values) -> tuple[Tensor, ...]:
        return self.summarise(k, v)

    def decode(self, past: Past | None, new: NewTokens) -> tuple[Answers, Past]:
        """Decode from the sums, if they are a `fixed_state`."""
        if not self.fixed_state:
            return super().decode(past, new)
        return decode_from_sums(self, self, past, new)

    def summarise(self, k: Keys, v: Values, present: Tensor | None = None, **extras: Any) -> tuple[Tensor, ...]:
        """Return the state that later tokens need of these, if it has a `fixed_state`."""
        with full_precision(v):
            _, k, v, multiplicity, _ = self._prepare(k, k, v, present, extras)
            memory = self._empty_memory(k, v)
            self._add_keys(memory, k, v, multiplicity)
        return tuple(x for x in memory.tensors if x is not None)

    def continue_from(
        self, state: Sequence[Tensor], q: Queries, k: Keys, v: Values, present: Tensor | None = None, **extras: Any
    ) -> tuple[Attended, tuple[Tensor, ...]]:
        """Return the outputs of tokens after those in the state, and the state after them."""
        with full_precision(v):
            q, k, v, multiplicity, dtype = self._prepare(q, k, v, present, extras)
            sums, reference = (*state, None)[:2]
            out, *tensors = self._read_run(CHUNK, q, k, v, multiplicity, sums, reference)
        return out.to(dtype), tuple(x for x in tensors if x is not None)

    def _prepare(
        self, q: Tensor, k: Tensor, v: Tensor, present: Tensor | None, extras: dict[str, Any]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, torch.dtype]:
        """Return mapped tokens, the multiplicity of keys, and the dtype of the output."""
        dtype, (q, k, v) = v.dtype, to_common_dtype(q, k, v)
        k, v = zero_absent(present, k, v)
        q, k = self.map_tokens(q, k, fill_extras(self, q, k, v, extras))
        return q, k, v, multiplicity_of(k, None, present), dtype

    def _empty_memory(self, k: Tensor, v: Tensor) -> FeatureMemory:
        key = self.scale_features(k[..., :1, :], "key")
        return FeatureMemory.empty(key, v.shape[-1], self.is_normalised)

    def _attend_to_all(
        self, memory: FeatureMemory, q: Tensor, k: Tensor, v: Tensor, multiplicity: Tensor | None
    ) -> Tensor:
        """Add every key, then read for every query."""
        # Results are written in place only if neither autograd nor a transform records the operations.
        is_recording = torch.is_grad_enabled() or is_transformed()
        if memory.reference is None and not is_recording and has_equal_heads(q, k, v, multiplicity):
            return self._attend_in_place(memory, q, k, v, multiplicity)
        step = self._add_keys(memory, k, v, multiplicity)
        blocks = split_range(0, q.shape[-2], step)
        if len(blocks) < 2:
            return self._read(q, *memory.tensors)
        return self.recompute_by_rows(lambda _, *inputs: self._read(*inputs), blocks, q, *memory.tensors)

    def _attend_in_place(
        self, memory: FeatureMemory, q: Tensor, k: Tensor, v: Tensor, multiplicity: Tensor | None
    ) -> Tensor:
        """Compute `_attend_to_all` without gradients or logarithms, writing sums and outputs in place.

        Both products run at the speed of the hardware, so every temporary tensor beside them costs time.
        """
        step, sums = block_length(memory), memory.sums.flatten(0, 1)
        values, totals = sums.new_zeros(*sums.shape[:-1], v.shape[-1]), sums.new_zeros(*sums.shape[:-1], 1)
        for block_k, block_v, block_multiplicity in split_tokens(step, k, v, multiplicity):
            key = self.scale_features(block_k, "key")
            phi = memory.scale_keys(key, block_multiplicity).flatten(0, 1)
            pieces = split_pieces(phi)
            products = torch.bmm(pieces.mT, split_pieces(block_v.flatten(0, 1)))
            # The pieces of a single head are parts of one sum; several heads are not split.
            values += products if pieces is phi else products.sum(0, keepdim=True)
            if self.is_normalised:
                totals += phi.sum(-2)[..., None]
            # Freed, so that the features of the queries are written to memory that is in the cache.
            del key, phi, pieces
        out = q.new_empty(*q.shape[:-1], v.shape[-1])
        for block_q, block_out in split_tokens(step, q, out):
            phi = memory.scale_queries(self.scale_features(block_q, "query"))[0].flatten(0, 1)
            rows, pieces = block_out.flatten(0, 1), split_pieces(phi)
            torch.bmm(pieces, values.expand(len(pieces), -1, -1), out=split_pieces(rows))
            if self.is_normalised:
                # For a single head, twice as fast as a product of matrices with one column.
                total = torch.mv(phi[0], totals[0, :, 0])[:, None] if len(phi) == 1 else phi @ totals
                rows /= divisor(total)
        return out

    def _add_keys(self, memory: FeatureMemory, k: Tensor, v: Tensor, multiplicity: Tensor | None) -> int:
        """Add every key, a block of tokens at a time, and return the length of the blocks."""
        step = block_length(memory)
        for block in split_tokens(step, k, v, multiplicity):
            tensors = self._recompute_if(k.shape[-2] > step, self._sum_keys, *block)
            memory.merge(FeatureMemory(self.is_normalised, *tensors))
        return step

    def _attend_causally(
        self, memory: FeatureMemory, q: Tensor, k: Tensor, v: Tensor, multiplicity: Tensor | None, chunk: int
    ) -> Tensor:
        """Add the key of each query and read, in runs of a few chunks at once."""
        keys, (width, features) = k.shape[-2], memory.sums.shape[-2:]
        out = []
        if keys <= 2 * width and type(self).direct_scores is not FeatureMechanism.direct_scores:
            # Scores of no more keys, on average, than there are features are cheaper than the features.
            for end in range(chunk, keys + chunk, chunk):
                past = (_slice(x, 0, end) for x in (k, v, multiplicity))
                by_scores = partial(self._attend_by_scores, chunk)
                out.append(self._recompute_if(keys > chunk, by_scores, q[..., end - chunk : end, :], *past))
            return concatenate(out)
        run = tokens_in_cache(k.shape[0] * k.shape[1], width, features, chunk)
        tensors: list[Any] = list(memory.tensors)
        for block in split_tokens(run, q, k, v, multiplicity):
            part = partial(self._read_run, chunk)
            rows, *tensors = self._recompute_if(keys > run, part, *block, *tensors)
            out.append(rows)
        return concatenate(out)

    def _attend_by_scores(self, chunk: int, q: Tensor, k: Tensor, v: Tensor, multiplicity: Tensor | None) -> Tensor:
        """Return the outputs of a chunk of queries from the keys up to it, by scores, chunk by chunk."""
        values = append_ones(v) if self.is_normalised else v
        total = values.new_zeros(*q.shape[:-1], values.shape[-1])
        for start in range(0, k.shape[-2], chunk):
            block = slice(start, start + chunk)
            scores = self.direct_scores(q[..., None, :, :], k[..., None, block, :])
            assert scores is not None
            scores = scores[..., 0, :, :]
            if multiplicity is not None:
                scores = scores * multiplicity[..., block, :].mT
            if start + chunk >= k.shape[-2]:
                scores = scores.tril()
            total = total + scores @ values[..., block, :]
        return divide(total[..., :-1], total[..., -1:]) if self.is_normalised else total

    def _sum_keys(self, k: Tensor, v: Tensor, multiplicity: Tensor | None) -> MemoryTensors:
        """Return the memory of some keys."""
        key = self.scale_features(k, "key").without_absent(multiplicity)
        memory = FeatureMemory.empty(key, v.shape[-1], self.is_normalised)
        memory.raise_reference(key)
        memory.add(memory.scale_keys(key, multiplicity), v)
        return memory.tensors

    def _read(self, q: Tensor, *tensors: Any) -> Tensor:
        """Return the outputs of some queries from a memory."""
        memory = FeatureMemory(self.is_normalised, *tensors)
        return memory.read(*memory.scale_queries(self.scale_features(q, "query")))

    def _read_run(
        self, chunk: int, q: Tensor, k: Tensor, v: Tensor, multiplicity: Tensor | None, *tensors: Any
    ) -> tuple[Any, ...]:
        """Return the outputs of some tokens, and the memory after them."""
        memory = FeatureMemory(self.is_normalised, *tensors)
        return concatenate(self._read_tokens(memory, chunk, q, k, v, multiplicity)), *memory.tensors

    def _read_tokens(
        self, memory: FeatureMemory, chunk: int, q: Tensor, k: Tensor, v: Tensor, multiplicity: Tensor | None
    ) -> list[Tensor]:
        """Read a run of tokens, in halves if its keys grow too fast to be measured by its first."""
        key = self.scale_features(k, "key").without_absent(multiplicity)
        memory.raise_reference(key.first_token())
        if k.shape[-2] > 1 and memory.is_exceeded_by(key):
            # Halving ends: a single token is its own reference.
            halves = split_tokens(-(-k.shape[-2] // 2), q, k, v, multiplicity)
            return [out for tokens in halves for out in self._read_tokens(memory, chunk, *tokens)]
        phi, top = memory.scale_queries(self.scale_features(q, "query"))
        scores = self.direct_scores(split_chunks(q, chunk), split_chunks(k, chunk))
        if scores is not None and multiplicity is not None:
            scores = scores * split_chunks(multiplicity.expand(*k.shape[:-1], 1), chunk).mT
        out = memory.read_and_add(phi, top, memory.scale_keys(key, multiplicity), v, chunk, scores)
        # Only after reading, so that a row is measured against keys that it sees.
        memory.raise_reference(key)
        return [out]

    def _recompute_if(self, condition: bool, part: Callable[..., Out], *inputs: Tensor | None) -> Out:
        """Return `part(*inputs)`, which backward computes again if it is one of several parts."""
        return self.recompute(part, *inputs) if condition else part(*inputs)


class LogFeatureMechanism(FeatureMechanism):
    """Features `factors * exp(logs)`, with logs too large to take exp of.

    Normalised, logits of any size are fine. With normalised=no the sums are as safe and multiplied back: the
    output is infinite, or not a number, if its true size is beyond the number format.
    """

    @abstractmethod
    def scale_features(self, x: Tokens, side: Side) -> ScaledFeatures: ...

    def compute_features(self, x: Tokens, side: Side) -> Features:
        return self.scale_features(x, side).product()

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Compute the quadratic form over a common reference; a causal row is one over the keys it sees."""
        multiplicity = multiplicity_of(k, options.counts, options.present)
        q, k = self.map_tokens(q, k, extras)
        if not options.causal:
            return self._attend_quadratic(q, k, v, multiplicity)
        rows = []
        for i in range(q.shape[-2]):
            past = (_slice(x, 0, options.first + i + 1) for x in (k, v, multiplicity))
            rows.append(self._attend_quadratic(q[..., i : i + 1, :], *past))
        return torch.cat(rows, dim=-2)

    def _attend_quadratic(self, q: Tensor, k: Tensor, v: Tensor, multiplicity: Tensor | None) -> Tensor:
        """Compute the quadratic form if every query sees every present key."""
        key = self.scale_features(k, "key").without_absent(multiplicity)
        memory = FeatureMemory.empty(key, 0, self.is_normalised)
        memory.raise_reference(key)
        phi, top = memory.scale_queries(self.scale_features(q, "query"))
        scores = phi @ memory.scale_keys(key, multiplicity).mT
        if self.is_normalised:
            return divide(scores @ v, scores.sum(-1, keepdim=True))
        return scores @ v if top is None else (scores @ v) * top.exp()


def decode_from_sums(
    mechanism: Mechanism, features: FeatureMechanism, past: Past | None, new: NewTokens
) -> tuple[Answers, Past]:
    """Decode a mechanism whose scores are those of `features`, from their sums.

    The first tokens are read by the mechanism itself, and added up only if others follow.
    """
    q, k, v, present, skipped = new.q, new.k, new.v, new.present, new.skipped
    lengths = new.lengths(past)
    if past is not None:
        out, state = features.continue_from(past.state, q, k, v, present, **new.extras)
        return out[..., skipped:, :], Past(lengths, state=state)
    extras = new.all_extras(mechanism)
    out = mechanism(q[..., skipped:, :], k, v, causal=True, first=skipped, present=present, **extras)
    return out, Past(lengths, state=LazyState(partial(features.summarise, k, v, present, **extras)))


def block_length(memory: FeatureMemory) -> int:
    """Return the number of tokens whose features are held at once."""
    # Without gradients, half of the cache of each core is for features.
    numbers = MAX_CACHED_NUMBERS if torch.is_grad_enabled() else MAX_CACHED_NUMBERS // 2 * torch.get_num_threads()
    return max(1, numbers // max(1, memory.sums[..., 0].numel()))


def has_equal_heads(q: Tensor, k: Tensor, v: Tensor, multiplicity: Tensor | None) -> bool:
    """Return whether no batch element or head of one tensor is shared by several of another."""
    leading = k.shape[:-2]
    if not q.shape[:-2] == leading == v.shape[:-2]:
        return False
    if multiplicity is None:
        return True
    common = torch.broadcast_shapes(leading, multiplicity.shape[:-2])  # type: ignore[no-untyped-call]
    return bool(common == leading)


def split_pieces(x: Float[Tensor, "heads tokens width"]) -> Float[Tensor, "pieces tokens_of_a_piece width"]:
    """Split the tokens of a single head into pieces, so that threads compute separate products.

    Products of several heads are separate anyway, and a number of tokens that pieces do not divide stays
    whole.
    """
    heads, tokens, width = x.shape
    return x.view(-1, PIECE, width) if heads == 1 and tokens and tokens % PIECE == 0 else x


def concatenate(rows: list[Tensor]) -> Tensor:
    """Concatenate rows of outputs, without a copy if there is only one part."""
    return rows[0] if len(rows) == 1 else torch.cat(rows, dim=-2)


def _slice(x: Any, start: int, stop: int) -> Any:
    return None if x is None else x[..., start:stop, :]
