"""Fast forms of mechanisms, timed against torch's fused softmax and against other packages."""

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

from benchmarks._base import Failure, Line, Measurement, at_least, at_most, describe_exit, ratio, require
from separatrix.analysis.costs.cost import peak_bytes
from separatrix.mechanisms import Causality, Mechanism, examples, mechanism_named
from separatrix.mechanisms.features._random import orthogonal
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

WIDTH = 64
LONG, STEPPED, LONGEST = 16_384, 8_192, 131_072
LAST_QUERIES = 8_192
QUADRATIC = {"score kernel", "sparse"}
"""Families whose time is quadratic, except for the patterns below."""
LINEAR_PATTERNS = {"window", "window-global", "block-random"}
SCORED = ("alibi", "differential", "fox", "path", "rotary")
"""Mechanisms of other families that score all pairs of tokens: their time is quadratic, not their memory.

Only the last queries are computed; a matrix of these queries by all keys would take twice the limit."""
MAX_RESIDENT = 2048.0
"""MiB that a process may use to attend to `LONGEST` tokens."""

Tokens = tuple[Tensor, Tensor, Tensor]
Run = Callable[[], Tensor]


def measure() -> Iterator[Line]:
    """Yield all measurements of this file; outputs are compared before times are."""
    with torch.no_grad():
        yield from compare_with_fused()
        yield from compare_with_packages()
        yield from compare_chunks_with_steps()
        linear = [mechanism.spelled for mechanism in examples() if has_linear_time(mechanism)]
        yield from measure_longest("linear-time", linear, LONGEST)
        yield from measure_longest("quadratic-time", SCORED, LAST_QUERIES)


def random_tokens(length: int, seed: int = 0) -> Tokens:
    """Return tokens of both signs with moderate logits, as models have them."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn((3, 1, 1, length, WIDTH), generator=generator) / 3
    return q, k, v


def compare_with_fused() -> Iterator[Measurement]:
    """Time softmax, and a window that should be much faster, against SDPA."""
    softmax, window = mechanism_named("softmax"), mechanism_named("window:size=128")
    title = "softmax against torch's SDPA, n=16,384"
    yield at_least(title, partial(speed_up_over_fused, softmax), "x", 0.97)
    title = "window of 128 against SDPA, n=16,384"
    yield at_least(title, partial(speed_up_over_fused, window), "x", 4.0)


def speed_up_over_fused(mechanism: Mechanism) -> float:
    """Return the time of torch's fused softmax relative to that of the mechanism."""
    check_definition(mechanism, 1_000)
    q, k, v = random_tokens(LONG)
    return ratio(lambda: scaled_dot_product_attention(q, k, v, scale=1.0), lambda: mechanism(q, k, v))


def compare_with_packages() -> Iterator[Measurement]:
    """Time mechanisms of linear time, causal or not, against packages that compute the same."""
    q, k, v = random_tokens(LONG)
    for name, package in performer_runs(q, k, v).items():
        title = f"{name} against performer-pytorch, n=16,384"
        ours: Run = partial(mechanism_named(name), q, k, v)
        yield at_least(title, partial(speed_up_over_package, title, ours, package), "x", 1.0)
        peak = peak_bytes(ours) / (LONG * WIDTH * 4)
        yield at_most(f"{name}: peak memory over that of one input", peak, "x", 6.0)
    q, k, v = random_tokens(STEPPED)
    q, k = q.abs(), k.abs()
    causal = partial(mechanism_named("causal-linear:normalised=yes"), q, k, v, causal=True)
    causal_performer = partial(performer.causal_linear_attention_noncuda, q, k, v, eps=0.0)
    causal_title = "causal-linear against performer-pytorch's causal path, n=8,192"
    speed_up = partial(speed_up_over_package, causal_title, causal, causal_performer, repeats=5)
    yield at_least(causal_title, speed_up, "x", 1.0)
    # Its buckets of 64 leave out the query's own, as a test shows. It is timed although it does less work.
    plain = partial(mechanism_named("causal-linear"), q, k, v, causal=True)
    yield at_least(
        "causal-linear against linear-attention-transformer's, n=8,192",
        lambda: ratio(lambda: causal_linear_attn(q, k, v), plain, repeats=15),
        "x",
        1.0,
    )


def speed_up_over_package(title: str, ours: Run, package: Run, repeats: int = 15) -> float:
    """Return the time of another package relative to ours, for the same result."""
    require_close(ours(), package(), title)
    return ratio(package, ours, repeats)


def performer_runs(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Run]:
    """Return performer-pytorch's attention with the same features as ours."""
    random = {"projection_matrix": orthogonal(256, WIDTH, 0).float(), "normalize_data": False, "eps": 0.0}

    def with_features(phi: Callable[[Tensor], Tensor]) -> Run:
        return lambda: performer.linear_attention(phi(q), phi(k), v)

    def favor() -> Tensor:
        query_features = performer.softmax_kernel(q, is_query=True, **random)
        key_features = performer.softmax_kernel(k, is_query=False, **random)
        return performer.linear_attention(query_features, key_features, v)  # type: ignore[no-any-return]

    return {"elu": with_features(lambda x: elu(x) + 1), "relu-features": with_features(relu), "favor": favor}


def compare_chunks_with_steps() -> Iterator[Measurement]:
    """Time chunks, whose tokens are read in parallel, against one step per token."""
    for name in ("causal-linear", "retention", "gla", "delta"):
        mechanism = mechanism_named(name)
        assert isinstance(mechanism, RecurrentMechanism)
        speed_up = partial(speed_up_over_steps, mechanism)
        yield at_least(f"{name}: chunks against steps, n=8,192", speed_up, "x", 5.0)
        growth = partial(memory_growth, mechanism)
        yield at_most(f"{name}: peak memory at twice the tokens", growth, "x", 2.1)


def speed_up_over_steps(mechanism: RecurrentMechanism) -> float:
    """Return the time of one step per token relative to that of chunks."""
    q, k, v = random_tokens(STEPPED)
    chunks, steps = partial(mechanism.chunked, q, k, v), partial(mechanism.unrolled, q, k, v)
    require_close(chunks()[0], steps(), f"{mechanism.name} in chunks against its steps")
    return ratio(steps, chunks, repeats=3)


def memory_growth(mechanism: RecurrentMechanism) -> float:
    """Return the peak memory at twice the tokens relative to that at `STEPPED` tokens."""
    lengths = STEPPED, 2 * STEPPED
    peak, longer_peak = (peak_bytes(partial(mechanism.chunked, *random_tokens(n))) for n in lengths)
    return longer_peak / peak


def measure_longest(kind: str, names: Sequence[str], queries: int) -> Iterator[Line]:
    """Yield the largest peak of processes that attend to many tokens, one per mechanism, and failures."""
    peaks = {}
    for name in names:
        try:
            peaks[name] = peak_resident(name, LONGEST, queries)
        except RuntimeError as error:
            yield Failure(f"n={LONGEST:,}: {name}", str(error))
    worst = max(peaks, key=lambda name: peaks[name])
    title = f"n={LONGEST:,}, the largest of {len(peaks)} {kind} mechanisms: {worst}"
    yield at_most(title, peaks[worst], "MiB", MAX_RESIDENT)


def has_linear_time(mechanism: Mechanism) -> bool:
    """Return whether the time is linear in the tokens."""
    if mechanism.name in SCORED:
        return False
    return mechanism.family not in QUADRATIC or mechanism.name in LINEAR_PATTERNS


PEAK_PROGRAM = """
import resource, sys, torch
from separatrix.mechanisms import Causality, mechanism_named
mechanism, (length, queries, width) = mechanism_named(sys.argv[1]), map(int, sys.argv[2:])
q, k, v = torch.randn((3, 1, 1, length, width), generator=torch.Generator().manual_seed(0)) / 3
causal, options = mechanism.causality is Causality.ALWAYS, {}
if queries < length:
    q, causal, options = q[..., -queries:, :], True, {"first": length - queries}
with torch.no_grad():
    out = mechanism(q, k, v, causal=causal, **options)
assert out.shape[-2] == queries and out.isfinite().all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak_resident(name: str, length: int, queries: int) -> float:
    """Return the MiB of a process, torch included, whose last `queries` attend to `length` tokens once."""
    command = [sys.executable, "-c", PEAK_PROGRAM, name, str(length), str(queries), str(WIDTH)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError("; ".join([describe_exit(process.returncode), *process.stderr.splitlines()[-1:]]))
    return float(process.stdout)


def check_definition(mechanism: Mechanism, length: int) -> None:
    """Require that the fast form agrees with the definition."""
    causal = mechanism.causality is Causality.ALWAYS
    q, k, v = random_tokens(length)
    fast, literal = mechanism(q, k, v, causal=causal), mechanism.definition(q, k, v, causal=causal)
    require_close(fast, literal, f"{mechanism.spelled} against its definition")


def require_close(out: Tensor, expected: Tensor, title: str) -> None:
    """Require that two outputs agree, so that no wrong one is timed."""
    tolerance = 1e-4 * float(expected.abs().max())
    require(torch.allclose(out, expected, rtol=1e-3, atol=tolerance), title)
