"""Kernels that depend on n, and sparse attention: the laws each must obey, and where they coincide."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction

import entmax
import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Mechanism, Softmax, mechanism_named
from separatrix.mechanisms.sparse.block_random import BlockRandom

KERNELS = ["logn-softmax", "logn-softmax:scale=1/3", "adaptive-softmax", "sigmoid", "sigmoid:bias=-2", "relu"]
BY_SCORE = ["sparsemax", "entmax", "entmax:alpha=1.2", "entmax:alpha=2", "topk:k=5", "hardmax"]
BY_PLACE = [
    "window:size=5",
    "window:size=1",
    "window-global:size=4,globals=3",
    "window-global:size=2,globals=0",
    "block-random:block=4,random=2,seed=1",
    "block-random:block=5,random=0",
    "strided:stride=6",
    "strided:stride=1",
]
SPELLINGS = [*KERNELS, "squared-relu", *BY_SCORE, *BY_PLACE]
UNORDERED = [*KERNELS, "squared-relu", *BY_SCORE]
UNNORMALISED = {"sigmoid", "relu", "squared-relu"}
EPS = torch.finfo(torch.float64).eps


@pytest.fixture(params=SPELLINGS)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return mechanism_named(request.param)


@pytest.fixture(params=UNORDERED)
def unordered(request: pytest.FixtureRequest) -> Mechanism:
    return mechanism_named(request.param)


def tokens(
    queries: int = 37, keys: int = 37, width: int = 5, features: int = 7, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of both signs."""
    generator = torch.Generator().manual_seed(1)
    q, k, v = (
        torch.randn(2, 3, *shape, generator=generator, dtype=torch.float64).to(dtype)
        for shape in ((queries, width), (keys, width), (keys, features))
    )
    return q, k, v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_fast_form_is_the_definition(mechanism: Mechanism, causal: bool, dtype: torch.dtype) -> None:
    q, k, v = tokens(dtype=dtype)
    bound = 256 * torch.finfo(dtype).eps
    fast, slow = (form(q, k, v, causal=causal) for form in (mechanism, mechanism.definition))
    assert fast.dtype == dtype
    torch.testing.assert_close(fast, slow, rtol=bound, atol=bound)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(37, 12), (12, 37), (300, 290), (1, 9)])
def test_unequal_lengths(mechanism: Mechanism, queries: int, keys: int, causal: bool) -> None:
    q, k, v = tokens(queries, keys)
    fast, slow = (form(q, k, v, causal=causal) for form in (mechanism, mechanism.definition))
    assert slow.isfinite().all()
    torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-12)


def test_blocks_of_queries_do_not_show(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.mechanisms._blocks.MAX_SCORES", 37 * 6 * 4)
    q, k, v = tokens()
    for causal in (False, True):
        slow = mechanism.definition(q, k, v, causal=causal)
        torch.testing.assert_close(mechanism(q, k, v, causal=causal), slow, rtol=1e-12, atol=1e-12)


def test_counts_are_repetition(unordered: Mechanism) -> None:
    q, k, v = tokens(queries=11, keys=5)
    counts = torch.tensor([1, 3, 2, 5, 0])
    repeated = [x.repeat_interleave(counts, dim=-2) for x in (k, v)]
    literal = unordered.definition(q, *repeated)
    for form in (unordered, unordered.definition):
        torch.testing.assert_close(form(q, k, v, counts.double()), literal, rtol=1e-12, atol=1e-12)
        each = counts.double().expand(2, 3, 5)
        torch.testing.assert_close(form(q, k, v, each), literal, rtol=1e-12, atol=1e-12)


def test_a_billion_tokens_are_one_key(unordered: Mechanism) -> None:
    q, k, v = tokens(queries=3, keys=4, dtype=torch.float32)
    counts = torch.tensor([1e9, 1.0, 1e18, 3.0], dtype=torch.float64)
    out = unordered(q, k, v, counts)
    assert out.dtype == torch.float32
    assert out.isfinite().all()
    torch.testing.assert_close(
        out.double(), unordered(q.double(), k.double(), v.double(), counts), rtol=1e-3, atol=1e-3
    )


def test_keys_that_stand_for_nothing_give_zero(unordered: Mechanism) -> None:
    q, k, v = tokens()
    nothing = torch.zeros(37, dtype=torch.float64)
    for form in (unordered, unordered.definition):
        assert torch.equal(form(q, k, v, nothing), torch.zeros_like(q[..., :1]).expand_as(v))


@pytest.mark.parametrize("spelling", BY_PLACE)
def test_places_refuse_counts(spelling: str) -> None:
    q, k, v = tokens()
    with pytest.raises(UsageError, match="does not accept counts"):
        mechanism_named(spelling)(q, k, v, torch.ones(37, dtype=torch.float64))


def test_counted_keys_have_no_order(unordered: Mechanism) -> None:
    q, k, v = tokens()
    with pytest.raises(UsageError, match="counted tokens have no order"):
        unordered(q, k, v, torch.ones(37, dtype=torch.float64), causal=True)


def test_the_future_has_no_gradient(mechanism: Mechanism) -> None:
    """d out_i / d k_j and d out_i / d v_j are exactly 0 for j > i, and a query touches its own row only."""
    for form in (mechanism, mechanism.definition):
        for i in (0, 7, 20):
            q, k, v = (x[:1, :1].clone().requires_grad_() for x in tokens(24, 24))
            form(q, k, v, causal=True)[..., i, :].sum().backward()
            assert k.grad is not None
            assert v.grad is not None
            assert q.grad is not None
            assert not k.grad[..., i + 1 :, :].any()
            assert not v.grad[..., i + 1 :, :].any()
            assert v.grad[..., : i + 1, :].any() or mechanism.name in {"relu", "squared-relu"}
            q.grad[..., i, :] = 0
            assert not q.grad.any()


def test_a_prefix_is_what_it_was(mechanism: Mechanism) -> None:
    q, k, v = tokens()
    whole = mechanism(q, k, v, causal=True)
    prefix = mechanism(*(x[..., :20, :] for x in (q, k, v)), causal=True)
    torch.testing.assert_close(whole[..., :20, :], prefix, rtol=1e-12, atol=1e-12)


def test_permuting_tokens_permutes_the_result(mechanism: Mechanism) -> None:
    q, k, v = tokens()
    order = torch.randperm(37, generator=torch.Generator().manual_seed(3))
    shuffled = mechanism(*(x[..., order, :] for x in (q, k, v)))
    straight = mechanism(q, k, v)[..., order, :]
    same = torch.allclose(shuffled, straight, rtol=1e-12, atol=1e-12)
    assert same == (mechanism.permutation_equivariant or mechanism.spelled in {"window:size=1", "strided:stride=1"})


def test_batches_and_heads_are_apart(mechanism: Mechanism) -> None:
    q, k, v = tokens()
    whole = mechanism(q, k, v)
    for batch in range(2):
        for head in range(3):
            part = (slice(batch, batch + 1), slice(head, head + 1))
            torch.testing.assert_close(mechanism(q[part], k[part], v[part]), whole[part], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(mechanism: Mechanism, causal: bool) -> None:
    q, k, v = (x[:1, :1, :6, :2].clone().requires_grad_() for x in tokens())
    assert torch.autograd.gradcheck(lambda *args: mechanism(*args, causal=causal), (q, k, v))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("causal", [False, True])
def test_derivatives_of_the_definition(mechanism: Mechanism, causal: bool) -> None:
    """Backward, forward and twice backward."""
    q, k, v = (x[:1, :1, :3, :2].clone().requires_grad_() for x in tokens())

    def form(*args: Tensor) -> Tensor:
        return mechanism.definition(*args, causal=causal)

    assert torch.autograd.gradcheck(form, (q, k, v), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(form, (q, k, v))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_large_logits(mechanism: Mechanism, dtype: torch.dtype) -> None:
    q, k, v = tokens(dtype=dtype)
    for scale in (1e4, -1e4):
        for causal in (False, True):
            for form in (mechanism, mechanism.definition):
                big = (scale * q).requires_grad_()
                out = form(big, k, v, causal=causal)
                assert out.isfinite().all()
                assert out.dtype == dtype
                out.sum().backward()
                assert big.grad is not None
                assert big.grad.isfinite().all()


def test_one_token(mechanism: Mechanism) -> None:
    q, k, v = tokens(1, 1)
    for causal in (False, True):
        for form in (mechanism, mechanism.definition):
            out = form(q, k, v, causal=causal)
            assert out.isfinite().all()
            if mechanism.is_normalised:
                torch.testing.assert_close(out, v, rtol=8 * EPS, atol=0)


def test_normalised_weights_add_up(mechanism: Mechanism) -> None:
    assert mechanism.is_normalised == (mechanism.name not in UNNORMALISED)
    q, k, _ = tokens()
    ones = torch.ones(2, 3, 37, 1, dtype=torch.float64)
    for causal in (False, True):
        out = mechanism(q, k, ones, causal=causal)
        assert torch.allclose(out, ones, rtol=1e-13, atol=0) == mechanism.is_normalised


def test_sixteen_bits_are_rounded_once(mechanism: Mechanism) -> None:
    q, k, v = tokens(dtype=torch.bfloat16)
    exact = mechanism.definition(q.float(), k.float(), v.float())
    for form in (mechanism, mechanism.definition):
        torch.testing.assert_close(form(q, k, v).float(), exact, rtol=2**-8, atol=1e-5)


LATTICE: list[tuple[str, str]] = [
    ("window:size=37", "softmax"),
    ("window:size=1000000000000", "softmax"),
    ("topk:k=37", "softmax"),
    ("topk:k=1000", "softmax"),
    (f"logn-softmax:scale={Fraction(1 / math.log(37))}", "softmax"),
    ("strided:stride=37", "softmax"),
    ("strided:stride=1000000000000", "softmax"),
    ("strided:stride=1", "softmax"),
    ("window-global:size=1,globals=37", "softmax"),
    ("window-global:size=37,globals=0", "softmax"),
    ("window-global:size=5,globals=0", "window:size=5"),
    ("block-random:block=37", "softmax"),
    ("block-random:block=64", "softmax"),
    ("block-random:block=4,random=10", "softmax"),
    ("entmax:alpha=2", "sparsemax"),
]


@pytest.mark.parametrize(("special", "general"), LATTICE)
def test_special_cases(special: str, general: str) -> None:
    q, k, v = tokens()
    for causal in (False, True):
        if causal and special.startswith("logn"):
            continue
        ours, theirs = (mechanism_named(name)(q, k, v, causal=causal) for name in (special, general))
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("alpha", "bound"), [("1.01", 0.1), ("1.0001", 1e-3), ("1.000001", 1e-5)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_entmax_tends_to_softmax(alpha: str, bound: float, dtype: torch.dtype) -> None:
    q, k, v = tokens(dtype=dtype)
    near = mechanism_named(f"entmax:alpha={alpha}")(q, k, v)
    torch.testing.assert_close(near, Softmax()(q, k, v), rtol=0, atol=bound)


def test_cold_softmax_is_hardmax() -> None:
    """As the temperature falls, the mean of the values over the keys with the largest logit."""
    generator = torch.Generator().manual_seed(2)
    q, k = (torch.randint(-2, 3, (1, 2, 20, 3), generator=generator).double() for _ in range(2))
    v = torch.randn(1, 2, 20, 4, generator=generator, dtype=torch.float64)
    logits = q @ k.mT
    best = (logits == logits.amax(-1, keepdim=True)).double()
    assert (best.sum(-1) > 1).any()
    hard = best / best.sum(-1, keepdim=True) @ v
    torch.testing.assert_close(mechanism_named("softmax:temperature=1/1000000")(q, k, v), hard)
    torch.testing.assert_close(mechanism_named("topk:k=1")(q, k, v), hard)
    torch.testing.assert_close(mechanism_named("hardmax")(q, k, v), hard)
    torch.testing.assert_close(mechanism_named("sparsemax")(q * 1e6, k, v), hard)


def test_hardmax_shares_by_counts_and_reads_ties_up_to_rounding() -> None:
    one, eye = torch.ones(1, 1, 1, 1, dtype=torch.float64), torch.eye(4, dtype=torch.float64)[None, None]
    k = torch.tensor([3.0, 3.0 + 4 * EPS, 2.0, 3.0 - 1e-12], dtype=torch.float64).reshape(1, 1, 4, 1)
    hardmax = mechanism_named("hardmax")
    assert hardmax(one, k, eye).flatten().tolist() == [0.5, 0.5, 0, 0]
    counts = torch.tensor([3e17, 1e17, 1e18, 1.0], dtype=torch.float64)
    assert hardmax(one, k, eye, counts).flatten().tolist() == [0.75, 0.25, 0, 0]
    counts[:2] = 0
    assert hardmax(one, k, eye, counts).flatten().tolist() == [0, 0, 0, 1]


def test_hardmax_has_no_slope_in_queries_and_keys() -> None:
    q, k, v = (x.requires_grad_() for x in tokens())
    for causal in (False, True):
        slopes = torch.autograd.grad(mechanism_named("hardmax")(q, k, v, causal=causal).sum(), (q, k, v))
        assert [bool(slope.any()) for slope in slopes] == [False, False, True]


def test_no_positive_logit_no_relu() -> None:
    k = torch.ones(1, 1, 3, 1)
    for name in ("relu", "squared-relu"):
        assert not mechanism_named(name)(-k, k, k).any()


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_entmax_is_the_packages(scale: float) -> None:
    q, k, v = tokens()
    logits = scale * q @ k.mT
    for spelling, weights in (
        ("sparsemax", entmax.sparsemax(logits, dim=-1)),
        ("entmax", entmax.entmax15(logits, dim=-1)),
        ("entmax:alpha=1.2", entmax.entmax_bisect(logits, alpha=1.2, n_iter=100)),
    ):
        torch.testing.assert_close(mechanism_named(spelling)(scale * q, k, v), weights @ v, rtol=1e-11, atol=1e-11)


def test_entmax_gradients_are_the_packages() -> None:
    q, k, v = tokens()
    for spelling, function in (("sparsemax", entmax.sparsemax), ("entmax", entmax.entmax15)):
        ours, theirs = q.clone().requires_grad_(), q.clone().requires_grad_()
        mechanism_named(spelling)(ours, k, v).square().sum().backward()
        (function(theirs @ k.mT, dim=-1) @ v).square().sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-10)


def _blocks(i: int, j: int, n: int, causal: bool) -> bool:
    own = BlockRandom(block=4, random=2, seed=1).visible_blocks(i // 4, n, causal)
    return j // 4 in own


PATTERNS: list[tuple[str, Callable[[int, int, int, bool], bool]]] = [
    ("window:size=5", lambda i, j, n, causal: -5 < i - j < 5),
    ("window-global:size=4,globals=3", lambda i, j, n, causal: abs(i - j) <= 3 or min(i, j) in (0, 1, 2)),
    ("strided:stride=6", lambda i, j, n, causal: abs(i - j) <= 5 or j % 6 == i % 6),
    ("block-random:block=4,random=2,seed=1", _blocks),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("spelling", "sees"), PATTERNS)
def test_patterns_are_masks(spelling: str, sees: Callable[[int, int, int, bool], bool], causal: bool) -> None:
    n = 45
    q, k, v = tokens(n, n)
    mask = torch.tensor([[sees(i, j, n, causal) and (j <= i or not causal) for j in range(n)] for i in range(n)])
    assert not mask.all()
    theirs = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)
    torch.testing.assert_close(mechanism_named(spelling)(q, k, v, causal=causal), theirs, rtol=1e-12, atol=1e-12)


def local_attention(causal: bool, **options: object) -> Callable[..., Tensor]:
    """The peer without what we leave out: rotary positions and 1/sqrt(width)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("local_attention", exc_type=ImportError)
    options = {"look_forward": 0 if causal else 1, "scale": 1.0, "use_rotary_pos_emb": False, **options}
    made: Callable[..., Tensor] = module.LocalAttention(window_size=8, causal=causal, **options)
    return made


@pytest.mark.parametrize("causal", [False, True])
def test_local_attention_of_an_exact_window_is_ours_with_one_key_more(causal: bool) -> None:
    """Its window of 8 reaches 8 places back, the present one not counted: our size 9."""
    q, k, v = tokens(40, 40)
    for buckets in (1, 2):
        reach = {"look_backward": buckets} | ({} if causal else {"look_forward": buckets})
        theirs = local_attention(causal, exact_windowsize=True, **reach)(q, k, v)
        ours = mechanism_named(f"window:size={8 * buckets + 1}")(q, k, v, causal=causal)
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_local_attention_looks_at_whole_buckets_by_default(causal: bool) -> None:
    """All of its own bucket and of the neighbours: how far it sees depends on the place in the bucket."""
    q, k, v = tokens(40, 40)
    bucket = torch.arange(40) // 8
    apart = bucket[:, None] - bucket
    mask = ((apart == 0) | (apart == 1)).tril() if causal else apart.abs() <= 1
    theirs = local_attention(causal)(q, k, v)
    expected = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)
    torch.testing.assert_close(theirs, expected, rtol=1e-12, atol=1e-12)
    for size in (8, 9, 16):
        ours = mechanism_named(f"window:size={size}")(q, k, v, causal=causal)
        assert not torch.allclose(ours, theirs, atol=1e-3)


@pytest.mark.parametrize("causal", [False, True])
def test_local_attention_gives_weight_to_its_padding(causal: bool) -> None:
    """Keys of zeros fill its last bucket; looking ahead, the last queries see them. Ours has none."""
    q, k, v = tokens(37, 37)
    theirs = local_attention(causal, exact_windowsize=True, autopad=True)(q, k, v)
    ours = mechanism_named("window:size=9")(q, k, v, causal=causal)
    close = torch.isclose(ours, theirs, rtol=1e-12, atol=1e-12).all(-1).all(0).all(0)
    assert close.tolist() == [causal or place + 8 < 37 for place in range(37)]


@pytest.mark.parametrize("causal", [False, True])
def test_random_blocks(causal: bool) -> None:
    """Each block of queries has the neighbours, the first block and as many others as were asked for."""
    keys, drawn = 400, set()
    for seed in range(5):
        chosen = BlockRandom(block=4, random=3, seed=seed)
        for own in range(1, 100):
            seen = chosen.visible_blocks(own, keys, causal)
            near = {0, own - 1, own, own + 1} & set(range(100))
            others = set(seen) - near
            assert seen == sorted(set(seen))
            assert near <= set(seen) <= set(range(100))
            assert len(others) == (min(3, max(0, own - 2)) if causal else 3)
            assert not causal or all(block < own for block in others)
            assert seen == BlockRandom(block=4, random=3, seed=seed).visible_blocks(own, keys, causal)
            drawn.add((own, *sorted(others)))
    assert len(drawn) > 400


def test_topk_keeps_ties() -> None:
    k = torch.tensor([2.0, 1.0, 1.0, 1.0, 0.0], dtype=torch.float64).reshape(1, 1, 5, 1)
    eye, one = torch.eye(5, dtype=torch.float64)[None, None], torch.ones(1, 1, 1, 1, dtype=torch.float64)
    kept = [int((mechanism_named(f"topk:k={n}")(one, k, eye) > 0).sum()) for n in (1, 2, 3, 4, 5)]
    assert kept == [1, 4, 4, 4, 5]


def test_adaptive_temperature() -> None:
    """Never softer than softmax; softmax itself where that is already sharp."""
    k = torch.tensor([[1.0, 0.0, 0.0, 0.0], [9.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    one, eye = torch.ones(1, 1, 1, 1, dtype=torch.float64), torch.eye(4, dtype=torch.float64)[None, None]
    spread, sharp = (row.reshape(1, 1, 4, 1) for row in k)
    adaptive, plain = mechanism_named("adaptive-softmax"), Softmax()
    torch.testing.assert_close(adaptive(one, sharp, eye), plain(one, sharp, eye))
    p = plain(one, spread, eye).flatten()
    h = -(p * p.log()).sum().item()
    beta = -0.037 * h**4 + 0.481 * h**3 - 2.3 * h**2 + 4.917 * h - 1.791
    assert beta > 1.6
    torch.testing.assert_close(adaptive(one, spread, eye), plain(beta * one, spread, eye))


def test_n_is_what_a_query_sees() -> None:
    """Equal keys: sigmoid's weights are 1/(1+n), ReLU's 1/n, with n growing along a causal input."""
    ones = torch.ones(1, 1, 6, 1, dtype=torch.float64)
    n = torch.arange(1, 7, dtype=torch.float64)
    torch.testing.assert_close(mechanism_named("sigmoid")(0 * ones, ones, ones, causal=True).flatten(), n / (1 + n))
    torch.testing.assert_close(mechanism_named("relu")(3 * ones, ones, ones, causal=True).flatten(), 3 + 0 * n)
    rising = torch.tensor([1.0, 0, 0, 0, 0, 0], dtype=torch.float64).reshape(1, 1, 6, 1)
    sharp = mechanism_named("logn-softmax")(ones, rising, rising, causal=True).flatten()
    torch.testing.assert_close(sharp, n / (n + n - 1))


def test_long_windows_touch_few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores that a window computes grow with n, not with its square."""
    computed: list[int] = []

    def counting(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        computed.append(seen.numel())
        return q

    monkeypatch.setattr("separatrix.mechanisms.sparse._pattern.masked_softmax", counting)
    totals = []
    for n in (4096, 8192):
        computed.clear()
        x = torch.zeros(1, 1, n, 1)
        mechanism_named("window:size=128")(x, x, x)
        totals.append(sum(computed))
    assert 0 < totals[1] < 2.03 * totals[0]
    assert totals[1] < 8192 * 384


@pytest.mark.parametrize(
    ("spelling", "line"),
    [
        ("window:size=0", "size=0 is out of range; size must be 1 or more"),
        ("window-global:globals=-1", "globals=-1 is out of range; globals must be 0 or more"),
        ("topk:k=0", "k=0 is out of range; k must be 1 or more"),
        ("entmax:alpha=1", "alpha=1 is out of range; alpha must be 1.000001 to 2"),
        ("strided:stride=0", "stride=0 is out of range; stride must be 1 or more"),
        ("block-random:block=0", "block=0 is out of range; block must be 1 or more"),
        ("block-random:random=-1", "random=-1 is out of range; random must be 0 or more"),
        ("logn-softmax:scale=-1", "scale=-1 is out of range; scale must be 0 to 1000"),
        ("sigmoid:bias=1e7", "bias=10000000 is out of range; bias must be -1e6 to 1e6"),
    ],
)
def test_wrong_parameters_get_one_line(spelling: str, line: str) -> None:
    with pytest.raises(UsageError) as error:
        mechanism_named(spelling)
    assert str(error.value) == line


def test_spellings_are_read_back() -> None:
    for spelling in SPELLINGS:
        assert mechanism_named(mechanism_named(spelling).spelled).spelled == mechanism_named(spelling).spelled
