"""The mechanisms' fast forms, against torch's fused softmax and against what others ship."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from linear_attention_transformer.linear_attention_transformer import causal_linear_attn
from performer_pytorch import performer_pytorch as performer
from torch import Tensor
from torch.nn.functional import elu, relu, scaled_dot_product_attention

from benchmarks._base import (
    Failure,
    Line,
    Measurement,
    at_least,
    at_most,
    describe_exit,
    ratio,
    require,
)
from separatrix.analysis.costs.memory import peak_bytes
from separatrix.mechanisms import Causality, Mechanism, examples, mechanism_named
from separatrix.mechanisms.features._random import orthogonal
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

WIDTH = 64
LONG, STEPPED, LONGEST = 16_384, 8_192, 131_072
LAST = 8_192
QUADRATIC = {"score kernel", "sparse"}
"""Families whose time is quadratic, but for the patterns below."""
LINEAR_PATTERNS = {"window", "window-global", "block-random"}
SCORED = ("alibi", "differential", "fox", "path", "rotary")
"""Mechanisms of other families that score all pairs of tokens: their time is quadratic, not their memory.

They answer the last queries only; a matrix of these queries by all keys would take twice the limit."""
MOST_RESIDENT = 2048.0
"""MiB of a process that attends to the most tokens."""

Tokens = tuple[Tensor, Tensor, Tensor]
Run = Callable[[], Tensor]


def measure() -> Iterator[Line]:
    """All lines of this file. What is timed is first compared with what it is timed against."""
    with torch.no_grad():
        yield from against_fused()
        yield from against_peers()
        yield from chunked_against_steps()
        linear = [mechanism.spelled for mechanism in examples() if linear_time(mechanism)]
        yield from longest("linear-time", linear, LONGEST)
        yield from longest("quadratic-time", SCORED, LAST)


def tokens(length: int, seed: int = 0) -> Tokens:
    """Signed tokens of moderate logits, as models have them."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn((3, 1, 1, length, WIDTH), generator=generator) / 3
    return q, k, v


def against_fused() -> Iterator[Measurement]:
    """Softmax, and a window that should be worth its while."""
    softmax, window = mechanism_named("softmax"), mechanism_named("window:size=128")
    what = "softmax against torch's SDPA, n=16,384"
    yield at_least(what, partial(faster_than_fused, softmax), "x", 0.97)
    what = "window of 128 against SDPA, n=16,384"
    yield at_least(what, partial(faster_than_fused, window), "x", 4.0)


def faster_than_fused(mechanism: Mechanism) -> float:
    """How many times as long torch's fused softmax takes."""
    check_definition(mechanism, 1_000)
    q, k, v = tokens(LONG)
    return ratio(lambda: scaled_dot_product_attention(q, k, v, scale=1.0), lambda: mechanism(q, k, v))


def against_peers() -> Iterator[Measurement]:
    """Linear time, all tokens or causal, against the packages that compute the same."""
    q, k, v = tokens(LONG)
    for name, theirs in peers(q, k, v).items():
        what = f"{name} against performer-pytorch, n=16,384"
        ours: Run = partial(mechanism_named(name), q, k, v)
        yield at_least(what, partial(faster_than_peer, what, ours, theirs), "x", 1.0)
        held = peak_bytes(ours) / (LONG * WIDTH * 4)
        yield at_most(f"{name}: peak memory over that of one input", held, "x", 6.0)
    q, k, v = tokens(STEPPED)
    q, k = q.abs(), k.abs()
    normalised = partial(mechanism_named("causal-linear:normalised=yes"), q, k, v, causal=True)
    causal = partial(performer.causal_linear_attention_noncuda, q, k, v, eps=0.0)
    what = "causal-linear against performer-pytorch's causal path, n=8,192"
    yield at_least(what, lambda: faster_than_peer(what, normalised, causal, repeats=5), "x", 1.0)
    # Its buckets of 64 leave out the query's own (a test shows it): less work than ours, and still timed.
    plain = partial(mechanism_named("causal-linear"), q, k, v, causal=True)
    yield at_least(
        "causal-linear against linear-attention-transformer's, n=8,192",
        lambda: ratio(lambda: causal_linear_attn(q, k, v), plain, repeats=15),
        "x",
        1.0,
    )


def faster_than_peer(what: str, ours: Run, theirs: Run, repeats: int = 15) -> float:
    """How many times as long another package takes for the same result."""
    require_close(ours(), theirs(), what)
    return ratio(theirs, ours, repeats)


def peers(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Run]:
    """performer-pytorch's attention on the same features as ours."""
    random = {"projection_matrix": orthogonal(256, WIDTH, 0).float(), "normalize_data": False, "eps": 0.0}

    def by(phi: Callable[[Tensor], Tensor]) -> Run:
        return lambda: performer.linear_attention(phi(q), phi(k), v)  # type: ignore[no-any-return]

    def favor() -> Tensor:
        of_queries = performer.softmax_kernel(q, is_query=True, **random)
        of_keys = performer.softmax_kernel(k, is_query=False, **random)
        return performer.linear_attention(of_queries, of_keys, v)  # type: ignore[no-any-return]

    return {"elu": by(lambda x: elu(x) + 1), "relu-features": by(relu), "favor": favor}


def chunked_against_steps() -> Iterator[Measurement]:
    """Chunks in parallel against one step per token."""
    for name in ("causal-linear", "retention", "gla", "delta"):
        mechanism = mechanism_named(name)
        assert isinstance(mechanism, RecurrentMechanism)
        faster = partial(faster_than_steps, mechanism)
        yield at_least(f"{name}: chunks against steps, n=8,192", faster, "x", 5.0)
        grown = partial(growth_of_chunks, mechanism)
        yield at_most(f"{name}: peak memory at twice the tokens", grown, "x", 2.1)


def faster_than_steps(mechanism: RecurrentMechanism) -> float:
    """How many times as long the steps of all tokens take as their chunks."""
    q, k, v = tokens(STEPPED)
    chunked, unrolled = partial(mechanism.chunked, q, k, v), partial(mechanism.unrolled, q, k, v)
    require_close(chunked()[0], unrolled(), f"{mechanism.name} in chunks against its steps")
    return ratio(unrolled, chunked, repeats=3)


def growth_of_chunks(mechanism: RecurrentMechanism) -> float:
    """The peak memory at twice the tokens over that at their number."""
    one, two = (peak_bytes(partial(mechanism.chunked, *tokens(length))) for length in (STEPPED, 2 * STEPPED))
    return two / one


def longest(which: str, names: Sequence[str], queries: int) -> Iterator[Line]:
    """Yield the largest peak of processes that attend to many tokens, one per mechanism, and failures."""
    peaks = {}
    for name in names:
        try:
            peaks[name] = peak_resident(name, LONGEST, queries)
        except RuntimeError as error:
            yield Failure(f"n={LONGEST:,}: {name}", str(error))
    worst = max(peaks, key=lambda name: peaks[name])
    what = f"n={LONGEST:,}, the largest of {len(peaks)} {which} mechanisms: {worst}"
    yield at_most(what, peaks[worst], "MiB", MOST_RESIDENT)


def linear_time(mechanism: Mechanism) -> bool:
    """Whether its time is linear in the tokens."""
    if mechanism.name in SCORED:
        return False
    return mechanism.family not in QUADRATIC or mechanism.name in LINEAR_PATTERNS


PEAK = """
import resource, sys, torch
from separatrix.mechanisms import Causality, mechanism_named
mechanism, (length, queries, width) = mechanism_named(sys.argv[1]), map(int, sys.argv[2:])
q, k, v = torch.randn((3, 1, 1, length, width), generator=torch.Generator().manual_seed(0)) / 3
causal, more = mechanism.causality is Causality.ALWAYS, {}
if queries < length:
    q, causal, more = q[..., -queries:, :], True, {"first": length - queries}
with torch.no_grad():
    out = mechanism(q, k, v, causal=causal, **more)
assert out.shape[-2] == queries and out.isfinite().all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak_resident(name: str, length: int, queries: int) -> float:
    """Return the MiB of a process, torch included, whose last queries attend to so many tokens once."""
    command = [sys.executable, "-c", PEAK, name, str(length), str(queries), str(WIDTH)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError("; ".join([describe_exit(done.returncode), *done.stderr.splitlines()[-1:]]))
    return float(done.stdout)


def check_definition(mechanism: Mechanism, length: int) -> None:
    """The fast form is the definition."""
    causal = mechanism.causality is Causality.ALWAYS
    q, k, v = tokens(length)
    fast, literal = mechanism(q, k, v, causal=causal), mechanism.definition(q, k, v, causal=causal)
    require_close(fast, literal, f"{mechanism.spelled} against its definition")


def require_close(found: Tensor, expected: Tensor, what: str) -> None:
    """Nothing is timed that is wrong."""
    require(torch.allclose(found, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max())), what)
