"""Feature maps and low rank: fast forms against definitions, literal loops, special cases and peers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

from separatrix.analysis.cards.card import Card
from separatrix.analysis.cards.construction_result import NoConstructionResult
from separatrix.analysis.costs.curves import Disagreement
from separatrix.contract import Examination
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Mechanism, mechanism_named
from separatrix.mechanisms.calling import Calling
from separatrix.mechanisms.features._base import FeatureMechanism, LogFeatureMechanism
from separatrix.mechanisms.features._random import orthogonal
from separatrix.mechanisms.features.hedgehog import Hedgehog
from separatrix.mechanisms.lowrank.linformer import Linformer
from separatrix.mechanisms.lowrank.nystrom import Nystrom

FEATURES = [
    "identity-features",
    "elu",
    "relu-features",
    "squared-relu-features",
    "exp-features",
    "based",
    "hedgehog",
    "hedgehog:softmax=yes",
    "dpfp:nu=3",
    "cosformer",
    "favor:features=16",
    "rff:features=64",
]
LOW = ["linformer:rank=5", "nystrom:landmarks=5"]
LOGS = [name for name in FEATURES if isinstance(mechanism_named(name), LogFeatureMechanism)]
COUNTING = [name for name in FEATURES if mechanism_named(name).takes_counts]


def unnormalised(name: str) -> str:
    return f"{name}{',' if ':' in name else ':'}normalised=no"


def feature_map(name: str) -> FeatureMechanism:
    found = mechanism_named(name)
    assert isinstance(found, FeatureMechanism)
    return found


def tokens(
    queries: int = 37,
    keys: int = 37,
    width: int = 5,
    features: int = 7,
    dtype: torch.dtype = torch.float64,
    batch: tuple[int, int] = (2, 3),
    seed: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Positive tokens, so that the identity has positive scores as well."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (*batch, queries, width), (*batch, keys, width), (*batch, keys, features)
    q, k, v = (torch.rand(s, generator=generator, dtype=torch.float64).to(dtype) + 0.1 for s in shapes)
    return q, k, v


def signed(*shape: int, seed: int = 2) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_everything_here_is_of_its_family_and_has_a_source() -> None:
    for family, names in (("feature map", FEATURES), ("low rank", LOW)):
        ours = [mechanism_named(name) for name in names]
        assert {each.family for each in ours} == {family}
        assert all("[rec]" in each.source and "arXiv" in each.source for each in ours)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", [*FEATURES, *map(unnormalised, FEATURES)])
def test_fast_form_is_the_definition(name: str, causal: bool, dtype: torch.dtype) -> None:
    mechanism = mechanism_named(name)
    q, k, v = tokens(dtype=dtype)
    bound = 128 * torch.finfo(dtype).eps
    fast, literal = mechanism(q, k, v, causal=causal), mechanism.definition(q, k, v, causal=causal)
    assert fast.dtype == dtype
    torch.testing.assert_close(fast, literal, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", LOW)
def test_fast_low_rank_is_the_definition(name: str, dtype: torch.dtype) -> None:
    mechanism = mechanism_named(name)
    for queries, keys in ((37, 37), (11, 37), (37, 3), (1, 1)):
        q, k, v = tokens(queries, keys, dtype=dtype)
        bound = 128 * torch.finfo(dtype).eps * mechanism.sensitivity(q, k)
        torch.testing.assert_close(mechanism(q, k, v), mechanism.definition(q, k, v), rtol=bound, atol=bound)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("name", FEATURES)
def test_chunks_do_not_show(name: str, n: int) -> None:
    mechanism = feature_map(name)
    q, k, v = tokens(n, n, batch=(1, 2))
    literal = mechanism.definition(q, k, v, causal=True)
    for chunk in (1, 7, 64, 128, 256) if n < 200 else (7, 64, 128, 256):
        fast = mechanism(q, k, v, causal=True, chunk=chunk)
        torch.testing.assert_close(fast, literal, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FEATURES)
def test_blocks_do_not_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.mechanisms.features._base.MAX_CACHED_NUMBERS", 6 * 31 * 5)
    q, k, v = tokens()
    mechanism = mechanism_named(name)
    torch.testing.assert_close(mechanism(q, k, v), mechanism.definition(q, k, v), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FEATURES)
def test_queries_and_keys_may_differ_in_number(name: str) -> None:
    mechanism = mechanism_named(name)
    for queries, keys in ((11, 37), (37, 4), (1, 5)):
        q, k, v = tokens(queries, keys)
        torch.testing.assert_close(mechanism(q, k, v), mechanism.definition(q, k, v))
        for form in (mechanism, mechanism.definition):
            with pytest.raises(UsageError, match=f"as many queries as keys, not {queries} and {keys}"):
                form(q, k, v, causal=True)


class Largest(TorchDispatchMode):
    """The size of the largest tensor made."""

    numbers = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        for each in out if isinstance(out, tuple | list) else [out]:
            self.numbers = max(self.numbers, each.numel() if isinstance(each, Tensor) else 0)
        return out


@pytest.mark.parametrize("name", FEATURES + LOW)
def test_memory_is_linear_in_the_tokens(name: str) -> None:
    mechanism = mechanism_named(name)
    assert mechanism.streams
    q, k, v = tokens(4096, 4096, width=4, features=4, dtype=torch.float32, batch=(1, 1))
    for causal in (False, True) if name in FEATURES else (False,):
        with Largest() as largest, torch.no_grad():
            mechanism(q, k, v, causal=causal)
        assert 4096 <= largest.numbers <= 4096 * 64


@pytest.mark.parametrize("name", FEATURES)
def test_the_future_changes_nothing(name: str) -> None:
    mechanism = feature_map(name)
    q, k, v = tokens()
    before = mechanism(q, k, v, causal=True, chunk=16)
    later = [x.clone() for x in (k, v)]
    later[0][..., 20:, :] += 1
    later[1][..., 20:, :] -= 1
    after = mechanism(q, *later, causal=True, chunk=16)
    assert torch.equal(before[..., :20, :], after[..., :20, :])
    assert not torch.equal(before[..., 20:, :], after[..., 20:, :])


@pytest.mark.parametrize("name", FEATURES)
def test_no_gradient_comes_from_the_future(name: str) -> None:
    mechanism = feature_map(name)
    q, k, v = (x.requires_grad_() for x in tokens())
    for form in (mechanism, mechanism.definition):
        early = form(q, k, v, causal=True)[..., :20, :].square().sum()
        for gradient in torch.autograd.grad(early, (q, k, v)):
            assert gradient[..., 20:, :].count_nonzero() == 0
            assert gradient[..., 1:20, :].abs().sum(-1).min() > 0


@pytest.mark.parametrize("name", LOGS)
def test_a_surge_of_keys_drowns_no_earlier_row(name: str) -> None:
    """Keys far beyond all before them come within one chunk: rows before them keep their values."""
    mechanism = feature_map(name)
    q, k, v = tokens(50, 50)
    early = mechanism(q[..., :20, :], k[..., :20, :], v[..., :20, :], causal=True)
    for scale in (-100.0, 100.0, 1e4):
        surging = k.clone()
        surging[..., 20:, :] *= scale
        surging.requires_grad_()
        literal = mechanism.definition(q, surging, v, causal=True)
        (slope,) = torch.autograd.grad(literal.square().sum(), surging)
        for chunk in (3, 50, 64):
            fast = mechanism(q, surging, v, causal=True, chunk=chunk)
            torch.testing.assert_close(fast[..., :20, :], early)
            if not name.startswith("rff"):  # whose sums of waves cancel to any size
                torch.testing.assert_close(fast, literal, rtol=1e-7, atol=1e-9)
                (fast_slope,) = torch.autograd.grad(fast.square().sum(), surging)
                torch.testing.assert_close(fast_slope, slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", [*COUNTING, *map(unnormalised, COUNTING)])
def test_counts_are_repetition(name: str) -> None:
    mechanism = mechanism_named(name)
    q, k, v = tokens(queries=11, keys=5)
    for counts in (torch.tensor([1, 3, 2, 5, 1]), torch.tensor([0, 3, 2, 0, 1])):
        literal = mechanism.definition(q, *(x.repeat_interleave(counts, dim=-2) for x in (k, v)))
        for form in (mechanism, mechanism.definition):
            torch.testing.assert_close(form(q, k, v, counts.double()), literal)
            torch.testing.assert_close(form(q, k, v, counts.double().expand(2, 3, 5)), literal)


@pytest.mark.parametrize("name", LOGS)
def test_a_key_that_counts_nothing_is_no_measure(name: str) -> None:
    mechanism = mechanism_named(name)
    q, k, v = tokens(queries=4, keys=3)
    huge = torch.cat([1e4 * k[..., :1, :], k], dim=-2)
    counts = torch.tensor([0.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    values = torch.cat([v[..., :1, :], v], dim=-2)
    for form in (mechanism, mechanism.definition):
        torch.testing.assert_close(form(q, huge, values, counts), form(q, k, v))
        assert form(q, huge, values, 0 * counts).count_nonzero() == 0


@pytest.mark.parametrize("name", FEATURES + LOW)
def test_what_is_not_done_is_refused(name: str) -> None:
    mechanism = mechanism_named(name)
    q, k, v = tokens()
    counts = torch.ones(37, dtype=torch.float64)
    for form in (mechanism, mechanism.definition):
        if not mechanism.takes_counts:
            with pytest.raises(UsageError, match="does not accept counts"):
                form(q, k, v, counts)
        elif name in FEATURES:
            with pytest.raises(UsageError, match="counted tokens have no order"):
                form(q, k, v, counts, causal=True)
        if name in LOW:
            with pytest.raises(UsageError, match="no causal form"):
                form(q, k, v, causal=True)


@pytest.mark.parametrize("name", FEATURES + LOW)
def test_permutation_equivariance_is_as_claimed(name: str) -> None:
    mechanism = mechanism_named(name)
    q, k, v = tokens()
    order = torch.randperm(37, generator=torch.Generator().manual_seed(3))
    permuted = mechanism(*(x[..., order, :] for x in (q, k, v)))
    close = torch.allclose(permuted, mechanism(q, k, v)[..., order, :], rtol=1e-9)
    assert close is mechanism.permutation_equivariant


@pytest.mark.parametrize("name", FEATURES + LOW)
def test_heads_do_not_see_each_other(name: str) -> None:
    mechanism = mechanism_named(name)
    q, k, v = tokens()
    for causal in (False, True) if name in FEATURES else (False,):
        alone = [[mechanism(*(x[b : b + 1, h : h + 1] for x in (q, k, v)), causal=causal) for h in range(3)]
                 for b in range(2)]  # fmt: skip
        together = torch.cat([torch.cat(heads, dim=1) for heads in alone])
        torch.testing.assert_close(mechanism(q, k, v, causal=causal), together, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*FEATURES, *map(unnormalised, FEATURES)])
def test_rows_add_up_to_one_if_normalised(name: str) -> None:
    mechanism = mechanism_named(name)
    q, k, _ = tokens()
    ones = torch.ones(2, 3, 37, 1, dtype=torch.float64)
    for causal in (False, True):
        assert torch.allclose(mechanism(q, k, ones, causal=causal), ones) is mechanism.is_normalised


torchs_own = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
"""Differentiating forwards, torch scripts some of its own functions."""


@torchs_own
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", [*FEATURES, *map(unnormalised, ["elu", *LOGS])])
def test_gradients(name: str, causal: bool) -> None:
    mechanism = feature_map(name)
    small = tuple(x.requires_grad_() for x in tokens(3, 3, 2, 1, batch=(1, 1)))

    def definition(*x: Tensor) -> Tensor:
        return mechanism.definition(*x, causal=causal)

    assert torch.autograd.gradcheck(lambda *x: mechanism(*x, causal=causal, chunk=2), small)
    assert torch.autograd.gradcheck(definition, small, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(definition, small, fast_mode=True)


@torchs_own
@pytest.mark.parametrize("name", ["linformer:rank=3", "nystrom:landmarks=2"])
def test_low_rank_gradients(name: str) -> None:
    mechanism = mechanism_named(name)
    small = tuple(x.requires_grad_() for x in tokens(4, 4, 2, 2, batch=(1, 1)))
    for form in (mechanism, mechanism.definition):
        assert torch.autograd.gradcheck(lambda *x, form=form: form(*x), small)
    assert torch.autograd.gradcheck(lambda *x: mechanism.definition(*x), small, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda *x: mechanism.definition(*x), small)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", FEATURES + LOW)
def test_large_logits_are_borne(name: str, dtype: torch.dtype) -> None:
    """Logits of 1e4 of either sign, from queries, keys or both, over many tokens and over one."""
    mechanism = mechanism_named(name)
    for n in (17, 1):
        for on_q, on_k in ((1e4, 1.0), (-1e4, 1.0), (1.0, 1e4), (1.0, -1e4), (100.0, 100.0), (100.0, -100.0)):
            q, k, v = tokens(n, n, dtype=dtype, batch=(1, 2))
            q, k, v = (x.requires_grad_() for x in (q * on_q, k * on_k, v))
            for causal in (False, True) if name in FEATURES else (False,):
                for form in (mechanism, mechanism.definition):
                    out = form(q, k, v, causal=causal)
                    gradients = torch.autograd.grad(out.sum(), (q, k, v), allow_unused=True)
                    assert out.isfinite().all()
                    if name not in LOW:
                        assert all(x is None or x.isfinite().all() for x in gradients)


@pytest.mark.parametrize("name", [name for name in LOGS if not name.startswith("rff")])
def test_stabilised_weights_never_vanish(name: str) -> None:
    """With positive features the weights still add up to 1, where plain exp gives 0/0 or inf/inf."""
    mechanism = mechanism_named(name)
    ones = torch.ones(2, 3, 60, 1, dtype=torch.float64)
    q, k = (1e3 * signed(2, 3, 60, 5, seed=seed) for seed in (4, 5))
    for form in (mechanism, mechanism.definition):
        for causal in (False, True):
            torch.testing.assert_close(form(q, k, ones, causal=causal), ones)


def test_a_row_without_weight_is_zero_with_zero_gradients() -> None:
    q, k, v = tokens(6, 6)
    k = k.clone()
    k[..., :3, :] *= -1
    for name in ("relu-features", "squared-relu-features", "cosformer"):
        mechanism = mechanism_named(name)
        for form in (mechanism, mechanism.definition):
            leaves = [x.clone().requires_grad_() for x in (q, k, v)]
            out = form(*leaves, causal=True)
            assert out[..., :3, :].count_nonzero() == 0
            assert out[..., 3:, :].min() > 0
            gradients = torch.autograd.grad(out.sum(), leaves)
            assert all(x.isfinite().all() for x in gradients)
            assert all(x[..., :3, :].count_nonzero() == 0 for x in gradients)
            assert form(q, k[..., :3, :], v[..., :3, :]).count_nonzero() == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", FEATURES + LOW)
def test_sixteen_bits_are_added_up_in_float32(name: str, dtype: torch.dtype) -> None:
    mechanism = mechanism_named(name)
    q, k, v = tokens(300, 300, dtype=dtype)
    for causal in (False, True) if name in FEATURES else (False,):
        out = mechanism(q, k, v, causal=causal)
        wide = mechanism(q.float(), k.float(), v.float(), causal=causal)
        assert out.dtype == dtype
        assert torch.equal(out, wide.to(dtype))


def test_sixteen_bit_sums_do_not_overflow() -> None:
    k = torch.full((1, 1, 100_000, 1), 2.0, dtype=torch.float16)
    for name in ("identity-features", "relu-features", "based"):
        assert mechanism_named(name)(k[:, :, :1], k, k).item() == 2.0


def test_unnormalised_exponentials_overflow_only_where_the_truth_does() -> None:
    """A score of exp(60 - 60) is 1, though exp(60) squared would leave float32."""
    q, k = torch.full((1, 1, 1, 1), 120.0), torch.full((1, 1, 1, 1), -119.0)
    exp = mechanism_named("exp-features:normalised=no")
    torch.testing.assert_close(exp(q, k, torch.ones_like(q)).item(), math.e)
    assert exp(q, -k, torch.ones_like(q)).isinf().all()


def literal(
    kernel: Callable[[list[float], list[float], int, int], float], q: Tensor, k: Tensor, v: Tensor, causal: bool
) -> Tensor:
    """Attention with no tensor operation: one head, one number at a time."""
    rows = []
    for i, query in enumerate(q.tolist()):
        seen = range(i + 1) if causal else range(len(k))
        scores = [kernel(query, k[j].tolist(), i, j) for j in seen]
        total = sum(scores)
        rows.append([sum(s / total * v[j, c].item() for s, j in zip(scores, seen, strict=True))
                     for c in range(v.shape[1])])  # fmt: skip
    return torch.tensor(rows, dtype=torch.float64)


def by_elements(phi: Callable[[float], float]) -> Callable[[list[float], list[float], int, int], float]:
    return lambda q, k, i, j: sum(phi(a) * phi(b) for a, b in zip(q, k, strict=True))


def dpfp_kernel(q: list[float], k: list[float], i: int, j: int) -> float:
    both = [[max(a, 0.0) for a in x] + [max(-a, 0.0) for a in x] for x in (q, k)]
    size = len(both[0])
    phis = [[x[a] * x[(a - shift) % size] for shift in (1, 2, 3) for a in range(size)] for x in both]
    return sum(a * b for a, b in zip(*phis, strict=True))


LITERAL = {
    "elu": by_elements(lambda x: x + 1 if x > 0 else math.exp(x)),
    "relu-features": by_elements(lambda x: max(x, 0.0)),
    "squared-relu-features": by_elements(lambda x: max(x, 0.0) ** 2),
    "exp-features": by_elements(math.exp),
    "hedgehog": lambda q, k, i, j: sum(2 * math.cosh(a + b) for a, b in zip(q, k, strict=True)),
    "dpfp:nu=3": dpfp_kernel,
    "cosformer": lambda q, k, i, j: (
        by_elements(lambda x: max(x, 0.0))(q, k, i, j) * math.cos(math.pi / 2 * (i - j) / 9)
    ),
    "based": lambda q, k, i, j: (
        1 + sum(a * b for a, b in zip(q, k, strict=True)) + sum(a * b for a, b in zip(q, k, strict=True)) ** 2 / 2
    ),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", LITERAL)
def test_against_literal_loops(name: str, causal: bool) -> None:
    q, k, v = (signed(9, width, seed=seed) for width, seed in ((5, 6), (5, 7), (2, 8)))
    if name not in ("elu", "exp-features", "hedgehog", "based"):
        q, k = q + 0.5, k + 0.5
        k[0], q[0] = k[0].abs(), q[0].abs()
    expected = literal(LITERAL[name], q, k, v, causal)
    ours = mechanism_named(name)(q[None, None], k[None, None], v[None, None], causal=causal)[0, 0]
    torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("special", "general"), [("identity-features", "linear"), ("based", "taylor:order=2")])
def test_special_cases_are_kernels(special: str, general: str, causal: bool) -> None:
    q, k, v = tokens()
    ours = mechanism_named(special)(q, k, v, causal=causal)
    torch.testing.assert_close(ours, mechanism_named(general)(q, k, v, causal=causal))


def test_identity_features_are_the_kernel_of_power_one_and_homogeneous() -> None:
    q, k, v = tokens()
    identity, relu = mechanism_named("identity-features"), mechanism_named("relu-features")
    torch.testing.assert_close(identity(q, k, v), mechanism_named("power:beta=1")(q, k, v))
    torch.testing.assert_close(relu(2 * q, k, v), relu(q, k, v))
    torch.testing.assert_close(relu(q, k, v), identity(q, k, v))  # positive tokens


def test_exp_features_of_width_one_are_the_softmax_of_the_keys() -> None:
    q, k, v = tokens(width=1)
    softmax = mechanism_named("softmax")(torch.ones_like(q), k, v)
    torch.testing.assert_close(mechanism_named("exp-features")(q, k, v), softmax)


def test_cosformer_of_one_query_at_one_key_is_relu_features() -> None:
    q, k, v = tokens(1, 1)
    torch.testing.assert_close(mechanism_named("cosformer")(q, k, v), mechanism_named("relu-features")(q, k, v))


def test_hedgehogs_weight_trains_and_is_the_identity_by_default() -> None:
    q, k, v = tokens()
    plain = Hedgehog()(q, k, v, causal=True)
    torch.testing.assert_close(Hedgehog.with_weight(torch.eye(5, dtype=torch.float64))(q, k, v, causal=True), plain)
    weight = torch.nn.Parameter(signed(3, 4, 5))
    for softmax in (False, True):
        mechanism = Hedgehog.with_weight(weight, softmax=softmax)
        for causal in (False, True):
            mechanism(q, k, v, causal=causal).square().sum().backward()
            assert weight.grad is not None
            assert weight.grad.abs().min() > 0
            torch.testing.assert_close(mechanism(q, k, v, causal=causal), mechanism.definition(q, k, v, causal=causal))
    mapped = torch.einsum("hfw,bhnw->bhnf", weight.detach(), q)
    torch.testing.assert_close(
        Hedgehog.with_weight(weight.detach(), softmax=True).compute_features(q, "query"),
        torch.cat([mapped.softmax(-1), (-mapped).softmax(-1)], dim=-1),
    )


@pytest.mark.parametrize("name", ["favor", "rff"])
def test_random_features_are_right_on_average(name: str) -> None:
    q, k = 0.4 * signed(1, 1, 3, 4, seed=9), 0.4 * signed(1, 1, 3, 4, seed=10)
    seeds = 500
    estimates = torch.stack([
        mechanism.compute_features(q, "query") @ mechanism.compute_features(k, "key").mT
        for mechanism in (feature_map(f"{name}:features=10,seed={seed}") for seed in range(seeds))
    ])  # fmt: skip
    error = estimates.std(0) / math.sqrt(seeds)
    assert ((estimates.mean(0) - (q @ k.mT).exp()).abs() < 4 * error).all()
    assert (error < 0.2 * (q @ k.mT).exp()).all()  # so that the bound can fail


@pytest.mark.parametrize("name", ["favor", "rff"])
def test_many_random_features_are_softmax(name: str) -> None:
    q, k, v = tokens(width=3, batch=(1, 2))
    for causal in (False, True):
        softmax = mechanism_named("softmax")(q, k, v, causal=causal)
        few, many = (mechanism_named(f"{name}:features={count}") for count in (32, 8192))
        errors = [(each(q, k, v, causal=causal) - softmax).abs().max().item() for each in (few, many)]
        assert errors[1] < min(0.03, errors[0] / 2)


def test_random_features_come_from_the_seed() -> None:
    q, k, v = tokens(dtype=torch.float32)
    for name in ("favor", "rff", "linformer"):
        first, again, other = (mechanism_named(f"{name}:seed={seed}")(q, k, v) for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.allclose(first, other)


def test_favors_directions_are_orthogonal_within_blocks() -> None:
    directions = orthogonal(10, 4, seed=3)
    gram = directions @ directions.mT
    for block in (slice(0, 4), slice(4, 8), slice(8, 10)):
        inner = gram[block, block]
        torch.testing.assert_close(inner, torch.diag(inner.diagonal()))
    lengths = torch.stack([orthogonal(4, 4, seed).square().sum(-1) for seed in range(1000)])
    assert abs(lengths.mean() - 4) < 4 * lengths.std() / math.sqrt(4000)


@pytest.mark.parametrize(("queries", "keys"), [(12, 12), (9, 12), (12, 9), (1, 1), (1, 12)])
def test_nystrom_with_every_token_a_landmark_is_softmax(queries: int, keys: int) -> None:
    q, k, v = tokens(queries, keys, width=8)
    for landmarks in (12, 64):
        ours = Nystrom(landmarks=landmarks)
        for form in (ours, ours.definition):
            torch.testing.assert_close(form(q, k, v), mechanism_named("softmax")(q, k, v), rtol=0, atol=1e-13)


@pytest.mark.parametrize("landmarks", [2, 4, 8])
def test_nystrom_says_how_much_it_magnifies_rounding(landmarks: int) -> None:
    """Float32 is off by no more than it says, and by far more than a formula that magnifies nothing."""
    mechanism, eps = Nystrom(landmarks=landmarks), torch.finfo(torch.float32).eps
    q, k, v = tokens(dtype=torch.float32)
    wide = [x.double() for x in (q, k, v)]
    said = mechanism.sensitivity(q, k)
    assert said == pytest.approx(mechanism.sensitivity(*wide[:2]), rel=0.1)
    for form in (mechanism, mechanism.definition):
        off = (form(q, k, v).double() - mechanism(*wide)).abs().max().item() / eps
        assert said / 1000 < off < said
    assert said > 1000
    softmax = mechanism_named("softmax")
    assert (softmax(q, k, v).double() - softmax(*wide)).abs().max().item() < 4 * eps


def test_a_card_says_how_much_rounding_is_magnified() -> None:
    results = {"spike": NoConstructionResult("spike", "not computed here", is_broken=False)}
    not_timed = Disagreement("x", "not timed here")
    for name, words in (("nystrom", "it magnifies rounding errors 4"), ("softmax", "(0 checks).")):
        card = Card(Calling(mechanism_named(name)), Examination(), not_timed, not_timed, results)
        assert words in card.reading
        assert ("magnifies" in card.reading) is (card.as_json()["contract"]["magnifies_rounding"] > 1)


def test_nystrom_magnifies_nothing_where_every_token_is_a_landmark() -> None:
    q, k, v = tokens(dtype=torch.float32)
    mechanism = Nystrom(landmarks=37)
    assert mechanism.sensitivity(q.double(), k.double()) == pytest.approx(1, rel=1e-3)
    assert mechanism.sensitivity(q.double(), k.double(), order=1) > 1e5
    softmax = mechanism_named("softmax")(q, k, v)
    torch.testing.assert_close(mechanism(q, k, v), softmax, rtol=0, atol=2e-5)


def test_other_mechanisms_magnify_nothing() -> None:
    q, k, _ = tokens()
    assert {mechanism_named(name).sensitivity(q, k) for name in FEATURES} == {1.0}


def test_nystroms_landmarks_are_means_of_segments_that_cover_all() -> None:
    _, k, _ = tokens(keys=11)
    segments = [k[..., a:b, :].mean(-2) for a, b in ((0, 3), (3, 6), (6, 9), (9, 11))]
    torch.testing.assert_close(Nystrom(landmarks=4).compute_landmarks(k), torch.stack(segments, dim=-2))


def test_nystrom_is_exact_where_segments_are_constant_and_averages_with_one_landmark() -> None:
    q, k, v = tokens(64, 64)
    few = [x[..., ::8, :].repeat_interleave(8, dim=-2) for x in (q, k)]
    softmax = mechanism_named("softmax")(*few, v)
    torch.testing.assert_close(Nystrom(landmarks=8)(*few, v), softmax, rtol=0, atol=1e-12)
    assert not torch.allclose(Nystrom(landmarks=4)(*few, v), softmax, rtol=0, atol=1e-4)
    one = scaled_dot_product_attention(q.mean(-2, keepdim=True), k, v, scale=1.0)
    torch.testing.assert_close(Nystrom(landmarks=1)(q, k, v), one.expand_as(v))


class Unprojected(Linformer):
    """Linformer with E = F = the identity."""

    def projections(self, keys: int) -> tuple[Tensor, Tensor]:
        identity = torch.eye(keys, dtype=torch.float64)
        return identity, identity


def test_linformer_without_projection_is_softmax() -> None:
    q, k, v = tokens()
    for form in (Unprojected(), Unprojected().definition):
        torch.testing.assert_close(form(q, k, v), mechanism_named("softmax")(q, k, v))


def test_linformers_projections_are_drawn_for_the_number_of_keys() -> None:
    of_keys, of_values = Linformer(rank=200).projections(300)
    assert of_keys.shape == of_values.shape == (200, 300)
    for drawn in (of_keys, of_values):
        assert abs(drawn.square().mean() * 200 - 1) < 4 * math.sqrt(2 / 60_000)
    assert abs((of_keys * of_values).mean()) * 200 < 4 / math.sqrt(60_000)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("dpfp:nu=0", "nu=0 is out of range; nu must be 1 to 1000"),
        ("favor:features=0", "features=0 is out of range; features must be 1 to 2\\^20"),
        ("rff:features=7", "features=7 is odd; half of them are sines and half are cosines"),
        ("rff:seed=-1", "seed=-1 is out of range; seed must be 0 to 2\\^63 - 1"),
        ("linformer:rank=0", "rank=0 is out of range; rank must be 1 to 2\\^20"),
        ("linformer:seed=-1", "seed=-1 is out of range"),
        ("nystrom:landmarks=0", "landmarks=0 is out of range; landmarks must be 1 to 65536"),
        ("elu:normalised=maybe", "normalised=maybe is neither yes nor no"),
        ("hedgehog:weight=1", "hedgehog has no parameter weight"),
        ("hedgehog:sofmax=yes", "hedgehog has no parameter sofmax \\(did you mean softmax\\?\\)"),
    ],
)
def test_wrong_parameters_get_one_line(text: str, line: str) -> None:
    with pytest.raises(UsageError, match=line):
        mechanism_named(text)


def test_a_chunk_holds_a_token() -> None:
    with pytest.raises(UsageError, match="chunk=0 is out of range"):
        feature_map("elu")(*tokens(), causal=True, chunk=0)


def test_parameters_are_spelled_back() -> None:
    for text in ("elu", "elu:normalised=no", "favor:features=16,seed=3", "nystrom:landmarks=8", "dpfp:nu=2"):
        assert mechanism_named(text).spelled == text
    assert mechanism_named("dpfp:nu=3").spelled == "dpfp"


def peer(name: str) -> ModuleType:
    """A published implementation, where it is installed; its own import warnings are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module: ModuleType = pytest.importorskip(name, exc_type=ImportError)
    return module


def test_performers_softmax_kernel_is_favor() -> None:
    performer = peer("performer_pytorch.performer_pytorch")
    q, k, v = tokens(32, 32)
    favor = feature_map("favor:features=16,seed=5")
    options = {"projection_matrix": orthogonal(16, 5, 5), "normalize_data": False}
    for eps, agrees in ((0.0, True), (1e-4, False)):  # by default 1e-4 is added to each feature
        phi_q = performer.softmax_kernel(q, is_query=True, eps=eps, **options)
        phi_k = performer.softmax_kernel(k, is_query=False, eps=eps, **options)
        theirs = performer.linear_attention(phi_q, phi_k, v)
        assert torch.allclose(favor(q, k, v), theirs, rtol=1e-9) is agrees
        torch.testing.assert_close(favor(q, k, v), theirs, rtol=0.01, atol=0)


def test_performer_scales_logits_by_the_width() -> None:
    performer = peer("performer_pytorch.performer_pytorch")
    q, k, v = tokens(32, 32)
    options = {"projection_matrix": orthogonal(16, 5, 5), "eps": 0.0}
    phi_q = performer.softmax_kernel(q, is_query=True, **options)
    phi_k = performer.softmax_kernel(k, is_query=False, **options)
    ours = mechanism_named("favor:features=16,seed=5")(q * 5**-0.25, k * 5**-0.25, v)
    torch.testing.assert_close(ours, performer.linear_attention(phi_q, phi_k, v))


def test_performers_linear_attention_is_ours() -> None:
    performer = peer("performer_pytorch.performer_pytorch")
    q, k, v = tokens()
    for name in ("identity-features", "elu", "relu-features", "based", "dpfp"):
        mechanism = feature_map(name)
        phi_q, phi_k = mechanism.compute_features(q, "query"), mechanism.compute_features(k, "key")
        torch.testing.assert_close(mechanism(q, k, v), performer.linear_attention(phi_q, phi_k, v))
        theirs = performer.causal_linear_attention_noncuda(phi_q, phi_k, v, eps=0.0)
        torch.testing.assert_close(mechanism(q, k, v, causal=True), theirs)
        padded = performer.causal_linear_attention_noncuda(phi_q, phi_k, v)  # adds 1e-6 to the sum of keys
        assert not torch.allclose(mechanism(q, k, v, causal=True), padded, rtol=1e-9)


def test_performers_directions_favour_one_side() -> None:
    """Its Q of a QR decomposition keeps LAPACK's signs: a first entry that is never positive.

    Ours is turned to be uniform; only then does the average equal the kernel.
    """
    performer = peer("performer_pytorch.performer_pytorch")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = torch.stack([performer.orthogonal_matrix_chunk(3)[0, 0] for _ in range(200)])
    ours = torch.stack([orthogonal(3, 3, seed)[0, 0] for seed in range(200)])
    assert len({bool(x > 0) for x in theirs}) == 1
    assert 60 < (ours > 0).sum() < 140


def test_linear_attention_transformers_attention_is_exp_features_of_log_softmaxes() -> None:
    """It normalises each feature over the keys, not each row: exp features of shifted tokens, not divided.

    It also multiplies by 1/sqrt(width), as if logits were scaled, after its softmax.
    """
    module = peer("linear_attention_transformer.linear_attention_transformer")
    q, k, v = tokens(width=7)
    theirs = module.linear_attn(q.clone(), k.clone(), v.clone()) * math.sqrt(7)
    exp = mechanism_named("exp-features:normalised=no")
    torch.testing.assert_close(exp(q.log_softmax(-1), k.log_softmax(-2), v), theirs)
    assert not torch.allclose(mechanism_named("exp-features")(q, k, v), theirs)


def test_linear_attention_transformers_causal_buckets_leave_out_their_own_tokens() -> None:
    """Its causal form is exp features, but a query sees only whole buckets before its own.

    Buckets of one token are the exception: there the running sum is not shifted, and we agree.
    """
    module = peer("linear_attention_transformer.linear_attention_transformer")
    q, k, v = tokens(12, 12, width=7)
    exp = mechanism_named("exp-features")
    single = module.causal_linear_attn(q, k, v, bucket_size=1)
    torch.testing.assert_close(exp(q, k, v, causal=True), single)
    buckets = module.causal_linear_attn(q, k, v, bucket_size=4)
    assert buckets[..., :4, :].count_nonzero() == 0
    torch.testing.assert_close(exp(q[..., 4:8, :], k[..., :4, :], v[..., :4, :]), buckets[..., 4:8, :])


def nystrom_peer(width: int, landmarks: int, q: Tensor, k: Tensor, v: Tensor, iterations: int) -> Any:
    """The module with its maps set such that it reads q, k and v side by side from one input."""
    make = peer("nystrom_attention").NystromAttention
    sizes = {"dim": 3 * width, "dim_head": width, "heads": 1, "num_landmarks": landmarks}
    module = make(**sizes, pinv_iterations=iterations, residual=False).double()
    with torch.no_grad():
        module.to_qkv.weight.copy_(torch.eye(3 * width))
        module.to_qkv.weight[:width] *= math.sqrt(width)
        module.to_out[0].weight.copy_(torch.eye(width).repeat(3, 1))
        module.to_out[0].bias.zero_()
        return module(torch.cat([q, k, v], dim=-1)[:, 0], return_attn_matrices=True)


def test_nystrom_attentions_parts_are_ours() -> None:
    q, k, v = 2 * signed(2, 1, 32, 6), 2 * signed(2, 1, 32, 6, seed=3), signed(2, 1, 32, 6, seed=4)
    ours = Nystrom(landmarks=4)
    few_q, few_k = ours.compute_landmarks(q), ours.compute_landmarks(k)
    out, (to_few, inverse, from_few) = nystrom_peer(6, 4, q, k, v, iterations=40)
    torch.testing.assert_close((q @ few_k.mT).softmax(-1), to_few)
    torch.testing.assert_close((few_q @ k.mT).softmax(-1), from_few)
    torch.testing.assert_close(torch.linalg.pinv((few_q @ few_k.mT).softmax(-1)), inverse, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(ours(q, k, v)[:, 0], out[..., :6], rtol=1e-6, atol=1e-6)
    few_steps, _ = nystrom_peer(6, 4, q, k, v, iterations=6)  # its default has not converged
    assert not torch.allclose(ours(q, k, v)[:, 0], few_steps[..., :6], atol=1e-6)


def test_nystrom_attention_pads_where_we_split_evenly() -> None:
    q, k, v = (signed(1, 1, 30, 6, seed=seed) for seed in (2, 3, 4))
    out, (_, _, from_few) = nystrom_peer(6, 4, q, k, v, iterations=40)
    assert from_few.shape[-1] == 32  # two keys of zeros came in, and get weight
    assert from_few[..., :2].min() > 0
    assert not torch.allclose(Nystrom(landmarks=4)(q, k, v)[:, 0], out[..., :6], atol=1e-3)


def test_linformers_module_is_ours_with_its_projections() -> None:
    module = peer("linformer").LinformerSelfAttention(dim=6, seq_len=20, k=4, heads=1).double()

    class Theirs(Linformer):
        def projections(self, keys: int) -> tuple[Tensor, Tensor]:
            return module.proj_k.detach()[:keys].mT, module.proj_v.detach()[:keys].mT

    with torch.no_grad():
        for map_, scale in ((module.to_q, math.sqrt(6)), (module.to_k, 1), (module.to_v, 1), (module.to_out, 1)):
            map_.weight.copy_(scale * torch.eye(6))
        module.to_out.bias.zero_()
        for n in (20, 13):
            x = signed(2, 1, n, 6)
            torch.testing.assert_close(Theirs()(x, x, x)[:, 0], module(x[:, 0]))


def test_these_are_mechanisms() -> None:
    for name in FEATURES + LOW:
        mechanism = mechanism_named(name)
        assert isinstance(mechanism, Mechanism)
        assert mechanism.is_normalised is (name in FEATURES)
