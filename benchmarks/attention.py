"""The mechanisms' fast forms, against torch's fused softmax and against what others ship."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import torch
from linear_attention_transformer.linear_attention_transformer import causal_linear_attn
from performer_pytorch import performer_pytorch as performer
from torch import Tensor
from torch.nn.functional import elu, relu, scaled_dot_product_attention

from benchmarks._base import Measurement, at_least, at_most, ratio, require
from separatrix.costs.memory import peak_bytes
from separatrix.mechanisms import Causality, Mechanism, examples, mechanism_named
from separatrix.mechanisms.features._random import orthogonal
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

WIDTH = 64
LONG, STEPPED, LONGEST = 16_384, 8_192, 131_072
QUADRATIC = {"score kernel", "sparse"}
"""Families whose time is quadratic, but for the patterns below."""
LINEAR_PATTERNS = {"window", "window-global", "block-random"}

Tokens = tuple[Tensor, Tensor, Tensor]
Run = Callable[[], Tensor]


def measure() -> Iterator[Measurement]:
    """All lines of this file. What is timed is first compared with what it is timed against."""
    with torch.no_grad():
        yield from against_fused()
        yield from against_peers()
        yield from chunked_against_steps()
        yield from longest()


def tokens(length: int, seed: int = 0) -> Tokens:
    """Signed tokens of moderate logits, as models have them."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn((3, 1, 1, length, WIDTH), generator=generator) / 3
    return q, k, v


def against_fused() -> Iterator[Measurement]:
    """Softmax, and a window that should be worth its while."""
    q, k, v = tokens(LONG)
    softmax, window = mechanism_named("softmax"), mechanism_named("window:size=128")
    check_definition(softmax, 1_000)
    check_definition(window, 1_000)

    def fused() -> Tensor:
        return scaled_dot_product_attention(q, k, v, scale=1.0)

    yield at_least(
        "softmax against torch's SDPA, n=16,384", ratio(fused, lambda: softmax(q, k, v)), "x", 0.97
    )
    yield at_least("window of 128 against SDPA, n=16,384", ratio(fused, lambda: window(q, k, v)), "x", 4.0)


def against_peers() -> Iterator[Measurement]:
    """Linear time, all tokens or causal, against the packages that compute the same."""
    q, k, v = tokens(LONG)
    for name, theirs in peers(q, k, v).items():
        ours = mechanism_named(name)
        require_close(ours(q, k, v), theirs(), f"{name} against performer-pytorch")
        faster = ratio(theirs, lambda ours=ours: ours(q, k, v), repeats=15)  # type: ignore[misc]
        yield at_least(f"{name} against performer-pytorch, n=16,384", faster, "x", 1.0)
        held = peak_bytes(lambda ours=ours: ours(q, k, v)) / (LONG * WIDTH * 4)  # type: ignore[misc]
        yield at_most(f"{name}: peak memory over that of one input", held, "x", 6.0)
    q, k, v = tokens(STEPPED)
    q, k = q.abs(), k.abs()
    ours = mechanism_named("causal-linear:normalised=yes")

    def causal() -> Tensor:
        return performer.causal_linear_attention_noncuda(q, k, v, eps=0.0)  # type: ignore[no-any-return]

    require_close(ours(q, k, v, causal=True), causal(), "causal-linear against performer-pytorch")
    faster = ratio(causal, lambda: ours(q, k, v, causal=True))
    yield at_least("causal-linear against performer-pytorch's causal path, n=8,192", faster, "x", 1.0)
    # Its buckets of 64 leave out the query's own (a test shows it): less work than ours, and still timed.
    plain = mechanism_named("causal-linear")
    faster = ratio(lambda: causal_linear_attn(q, k, v), lambda: plain(q, k, v, causal=True), repeats=15)
    yield at_least("causal-linear against linear-attention-transformer's, n=8,192", faster, "x", 1.0)


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
    q, k, v = tokens(STEPPED)
    for name in ("causal-linear", "retention", "gla", "delta"):
        mechanism = mechanism_named(name)
        assert isinstance(mechanism, RecurrentMechanism)
        chunked, unrolled = mechanism.chunked, mechanism.unrolled
        require_close(chunked(q, k, v)[0], unrolled(q, k, v), f"{name} in chunks against its steps")
        faster = ratio(
            lambda unrolled=unrolled: unrolled(q, k, v),  # type: ignore[misc]
            lambda chunked=chunked: chunked(q, k, v),  # type: ignore[misc]
            repeats=3,
        )
        yield at_least(f"{name}: chunks against steps, n=8,192", faster, "x", 5.0)
        peaks = [
            peak_bytes(lambda chunked=chunked, x=x: chunked(*x))  # type: ignore[misc]
            for x in (tokens(STEPPED), tokens(2 * STEPPED))
        ]
        yield at_most(f"{name}: peak memory at twice the tokens", peaks[1] / peaks[0], "x", 2.1)


def longest() -> Iterator[Measurement]:
    """131,072 tokens for everything that is linear in them, each in a process of its own."""
    peaks = {each.spelled: peak_resident(each.spelled) for each in examples() if linear_time(each)}
    worst = max(peaks, key=lambda name: peaks[name])
    what = f"n=131,072, the largest of {len(peaks)} linear-time mechanisms: {worst}"
    yield at_most(what, peaks[worst], "MiB", 2048.0)


def linear_time(mechanism: Mechanism) -> bool:
    """Whether its time is linear in the tokens."""
    return mechanism.family not in QUADRATIC or mechanism.name in LINEAR_PATTERNS


PEAK = """
import resource, sys, torch
from separatrix.mechanisms import Causality, mechanism_named
mechanism, length, width = mechanism_named(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
q, k, v = torch.randn((3, 1, 1, length, width), generator=torch.Generator().manual_seed(0)) / 3
with torch.no_grad():
    out = mechanism(q, k, v, causal=mechanism.causality is Causality.ALWAYS)
assert out.isfinite().all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak_resident(name: str) -> float:
    """MiB of a whole process, torch included, that attends to the longest tokens once."""
    command = [sys.executable, "-c", PEAK, name, str(LONGEST), str(WIDTH)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
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
