"""Recurrent and hybrid mechanisms: four forms that agree, special cases that coincide, and only the past."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, mechanism_named
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

SPELLINGS = [
    "causal-linear",
    "causal-linear:normalised=yes",
    "retention",
    "retention:decay=0.5",
    "gla",
    "gla:gate=0.9",
    "ssd",
    "ssd:gate=0.5",
    "delta",
    "delta:beta=1/2",
    "delta:beta=0.3,unit_keys=no",
    "gated-delta",
    "gated-delta:gate=0.9,beta=2",
    "kda",
    "kda:gate=0.9,beta=2",
    "deltaproduct",
    "deltaproduct:factors=3,beta=2",
    "deltaproduct:beta=0.3,unit_keys=no",
    "rwkv7",
    "rwkv7:gate=0.9,rate=0.5,replacement=0.5",
    "mesanet",
    "mesanet:gate=1,ridge=0.1,unit_keys=no",
    "log-linear",
    "log-linear:gate=1,levels=3",
    "multiscale-retention",
    "multiscale-retention:decay=1/2,normalised=no",
    "window-linear:size=10",
    "window-linear:size=1",
    "window-linear",
]
GATED = ["gla", "ssd", "gated-delta", "kda", "rwkv7", "mesanet", "log-linear"]
CHANNELS = ("gla", "kda", "rwkv7")
"""Those with a gate for each channel."""
LENGTHS = [1, 5, 63, 64, 65, 130]
CHUNKS = [1, 7, 16, 64, 1000]


def recurrent(spelling: str) -> RecurrentMechanism:
    found = mechanism_named(spelling)
    assert isinstance(found, RecurrentMechanism)
    return found


@pytest.fixture(params=SPELLINGS)
def mechanism(request: pytest.FixtureRequest) -> RecurrentMechanism:
    return recurrent(request.param)


def tokens(
    n: int = 37, width: int = 5, features: int = 7, dtype: torch.dtype = torch.float64, positive: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    q, k, v = (
        torch.randn(2, 3, n, each, generator=generator, dtype=torch.float64) for each in (width, width, features)
    )
    q, k = (q.abs() + 0.1, k.abs() + 0.1) if positive else (q, k)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def tokens_for(mechanism: RecurrentMechanism, **shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Positive logits where a row is divided by their sum."""
    return tokens(positive=mechanism.is_normalised, **shape)


def gates(k: Tensor, channels: int, lowest: float = -2.0) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return lowest * torch.rand(*k.shape[:-1], channels, generator=generator, dtype=torch.float64)


def same(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", LENGTHS)
def test_the_four_forms_agree(mechanism: RecurrentMechanism, n: int) -> None:
    q, k, v = tokens_for(mechanism, n=n)
    literal = mechanism.definition(q, k, v, causal=True)
    assert literal.shape == v.shape
    same(mechanism.unrolled(q, k, v), literal)
    same(mechanism(q, k, v, causal=True), literal)
    for chunk in CHUNKS:
        same(mechanism.chunked(q, k, v, chunk)[0], literal)


@pytest.mark.parametrize("name", GATED)
@pytest.mark.parametrize("n", LENGTHS)
def test_the_four_forms_agree_on_given_gates(name: str, n: int) -> None:
    mechanism: Any = mechanism_named(name)
    q, k, v = tokens(n=n)
    given = gates(k, 5 if name in CHANNELS else 1)
    literal = mechanism.definition(q, k, v, causal=True, log_gates=given)
    same(mechanism.unrolled(q, k, v, log_gates=given), literal)
    same(mechanism(q, k, v, causal=True, log_gates=given), literal)
    for chunk in CHUNKS:
        same(mechanism.chunked(q, k, v, chunk, log_gates=given)[0], literal)
    if n > 1:
        assert not torch.allclose(mechanism(q, k, v, causal=True), literal)


@pytest.mark.parametrize(
    ("special", "general"),
    [
        ("retention:decay=1", "causal-linear"),
        ("gla:gate=1", "causal-linear"),
        ("ssd:gate=1", "causal-linear"),
        ("ssd:gate=0.9", "retention:decay=0.9"),
        ("gla:gate=0.9", "ssd:gate=0.9"),
        ("gated-delta:gate=1", "delta"),
        ("gated-delta:gate=1,beta=1/2,unit_keys=no", "delta:beta=1/2,unit_keys=no"),
        ("kda:gate=1", "delta"),
        ("kda:gate=0.9,beta=1/2,unit_keys=no", "gated-delta:gate=0.9,beta=1/2,unit_keys=no"),
        ("deltaproduct:factors=1,beta=2", "delta:beta=2"),
        ("fox:gate=1", "softmax"),
        ("window-linear:size=130", "softmax"),
        ("window-linear:size=1e18", "softmax"),
    ],
)
def test_special_cases(special: str, general: str) -> None:
    q, k, v = tokens(n=130, width=4, features=6)
    k = k / 2
    same(mechanism_named(special)(q, k, v, causal=True), mechanism_named(general)(q, k, v, causal=True))


def test_normalised_causal_linear_is_linear() -> None:
    q, k, v = tokens(n=130, positive=True)
    same(
        recurrent("causal-linear:normalised=yes")(q, k, v, causal=True), mechanism_named("linear")(q, k, v, causal=True)
    )


def test_gla_with_equal_channels_is_ssd() -> None:
    q, k, v = tokens(n=130)
    given = gates(k, 1)
    gla: Any = mechanism_named("gla")
    ssd: Any = mechanism_named("ssd")
    same(gla(q, k, v, causal=True, log_gates=given.expand(k.shape)), ssd(q, k, v, causal=True, log_gates=given))
    same(gla(q, k, v, causal=True, log_gates=0 * k), recurrent("causal-linear")(q, k, v, causal=True))
    same(ssd(q, k, v, causal=True, log_gates=0 * given), recurrent("causal-linear")(q, k, v, causal=True))


def test_delta_with_orthonormal_keys_is_causal_linear() -> None:
    q, k, v = tokens(n=16, width=16)
    k = torch.linalg.qr(k).Q
    same(recurrent("delta")(q, k, v, causal=True), recurrent("causal-linear")(q, k, v, causal=True))


def test_delta_replaces_what_linear_attention_adds_up() -> None:
    """Every token has the same key: the delta rule holds the last value, the sum holds all."""
    _, k, v = tokens(n=130)
    k = k[..., :1, :].expand(k.shape) / k[..., :1, :].norm(dim=-1, keepdim=True)
    same(recurrent("delta")(k, k, v, causal=True), v)
    same(recurrent("causal-linear")(k, k, v, causal=True), v.cumsum(-2))


def test_window_and_past_share_one_sum() -> None:
    """The last of three tokens, by hand: window of one, feature map elu + 1."""
    q = torch.tensor([0.0, 0.0, -1.0], dtype=torch.float64).reshape(1, 1, 3, 1)
    k = torch.tensor([2.0, -3.0, 5.0], dtype=torch.float64).reshape(1, 1, 3, 1)
    weights = torch.stack([torch.exp(q[0, 0, 2]) * 3, torch.exp(q[0, 0, 2] + k[0, 0, 1]), torch.ones(1)]).double()
    out = recurrent("window-linear:size=1")(q, k, torch.eye(3, dtype=torch.float64)[None, None], causal=True)
    same(out[0, 0, 2], (weights / weights.sum()).flatten())


def test_the_future_changes_nothing(mechanism: RecurrentMechanism) -> None:
    q, k, v = tokens_for(mechanism, n=300)
    before = mechanism(q, k, v, causal=True)
    q, k, v = q.clone(), k.clone(), v.clone()
    for x in (q, k, v):
        x[..., 200:, :] += 1
    after = mechanism(q, k, v, causal=True)
    same(before[..., :200, :], after[..., :200, :])
    assert not torch.allclose(before[..., 200:, :], after[..., 200:, :])


def test_no_gradient_comes_from_the_future(mechanism: RecurrentMechanism) -> None:
    q, k, v = (x.requires_grad_() for x in tokens_for(mechanism, n=50))
    out, _ = mechanism.chunked(q, k, v, 16)
    for gradient in torch.autograd.grad(out[..., :21, :].square().sum(), (q, k, v)):
        assert (gradient[..., 21:, :] == 0).all()
        assert gradient[..., :21, :].isfinite().all()
        assert (gradient[..., :21, :] != 0).any()


def test_gradients(mechanism: RecurrentMechanism) -> None:
    q, k, v = (x[:1, :1].clone().requires_grad_() for x in tokens_for(mechanism, n=7, width=3, features=2))
    assert torch.autograd.gradcheck(lambda *args: mechanism.chunked(*args, 4)[0], (q, k, v))


@pytest.mark.parametrize("name", GATED)
def test_gradients_of_given_gates(name: str) -> None:
    mechanism: Any = mechanism_named(name)
    q, k, v = (x[:1, :1] for x in tokens(n=7, width=3, features=2))
    given = gates(k, 3 if name in CHANNELS else 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda logs: mechanism.chunked(q, k, v, 4, log_gates=logs)[0], (given,))


def test_batches_and_heads_are_strangers(mechanism: RecurrentMechanism) -> None:
    q, k, v = tokens_for(mechanism, n=70)
    together = mechanism(q, k, v, causal=True)
    of_heads = {x.name: x.default(mechanism, q, k, v) for x in mechanism.extras if not x.per_token}
    for batch in range(2):
        for head in range(3):
            alone = (x[batch : batch + 1, head : head + 1] for x in (q, k, v))
            own = {name: x[head : head + 1] for name, x in of_heads.items()}
            same(mechanism(*alone, causal=True, **own)[0, 0], together[batch, head])


def test_float32_keeps_its_digits(mechanism: RecurrentMechanism) -> None:
    q, k, v = tokens_for(mechanism, n=130, dtype=torch.float32)
    exact = mechanism.definition(q.double(), k.double(), v.double(), causal=True)
    bound = 32 * torch.finfo(torch.float32).eps * exact.abs().max()
    for ours in (mechanism(q, k, v, causal=True), mechanism.unrolled(q, k, v)):
        assert ours.dtype == torch.float32
        assert (ours - exact).abs().max() <= bound


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_rounded_once(mechanism: RecurrentMechanism, dtype: torch.dtype) -> None:
    q, k, v = tokens_for(mechanism, n=130, dtype=dtype)
    exact = mechanism.definition(q.double(), k.double(), v.double(), causal=True)
    slack = 1e-5 * exact.abs().max().item()
    for ours in (
        mechanism(q, k, v, causal=True),
        mechanism.unrolled(q, k, v),
        mechanism.definition(q, k, v, causal=True),
    ):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.double(), exact, rtol=torch.finfo(dtype).eps, atol=slack)
    for part in mechanism.init_state(q, v):
        assert part.dtype in (torch.float32, torch.int64)


def test_the_state_does_not_grow(mechanism: RecurrentMechanism) -> None:
    sizes = []
    for n in (70, 110):
        q, k, v = tokens_for(mechanism, n=n, dtype=torch.float32)
        state = mechanism.init_state(q, v)
        for t in range(n):
            state, _ = mechanism.step(state, q[..., t, :], k[..., t, :], v[..., t, :])
        sizes.append(mechanism.state_bytes(state))
    assert sizes[0] == sizes[1] >= 2 * 3 * 5 * 7 * 4


def test_state_bytes_are_measured() -> None:
    q, _, v = tokens(dtype=torch.bfloat16)
    assert recurrent("delta").state_bytes(recurrent("delta").init_state(q, v)) == 2 * 3 * 5 * 7 * 4


def test_reading_can_stop_and_go_on(mechanism: RecurrentMechanism) -> None:
    """A prompt in one run, then token by token."""
    q, k, v = tokens_for(mechanism, n=60)
    literal = mechanism.definition(q, k, v, causal=True)
    state, out = mechanism.advance(mechanism.init_state(q, v), *(x[..., :45, :] for x in (q, k, v)))
    same(out, literal[..., :45, :])
    for t in range(45, 60):
        state, out_t = mechanism.step(state, q[..., t, :], k[..., t, :], v[..., t, :])
        same(out_t, literal[..., t, :])


class Largest(TorchDispatchMode):
    """The most numbers in any one tensor that was made."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for each in out if isinstance(out, tuple | list) else (out,):
            if isinstance(each, Tensor):
                self.numbers = max(self.numbers, each.numel())
        return out


@pytest.mark.exhaustive
def test_no_tensor_is_quadratic(mechanism: RecurrentMechanism) -> None:
    q, k, v = (x[:1, :1] for x in tokens_for(mechanism, n=8192, width=16, features=16, dtype=torch.float32))
    with Largest() as largest:
        mechanism(q, k, v, causal=True)
    assert largest.numbers <= 8192 * 16


@pytest.mark.exhaustive
def test_long_sequences_are_finite(mechanism: RecurrentMechanism) -> None:
    q, k, v = (x[:1, :1] for x in tokens_for(mechanism, n=20_000, width=16, features=4, dtype=torch.float32))
    k = k / k.norm(dim=-1, keepdim=True)
    assert mechanism(q, k, v, causal=True).isfinite().all()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "spelling", ["retention:decay=0.5", "ssd:gate=0.5", "gla:gate=0.5", "gated-delta:gate=0.5", "kda:gate=0.5"]
)
def test_products_of_decays_underflow_without_harm(spelling: str) -> None:
    """0.5 to the 1500 is below every float; what is near must not suffer."""
    mechanism = recurrent(spelling)
    q, k, v = (x[:1, :1] for x in tokens(n=10_000, width=2, features=2))
    exact, _ = mechanism.chunked(q, k, v, 16)
    same(exact[..., :99, :], mechanism.unrolled(*(x[..., :99, :] for x in (q, k, v))))
    for chunk in (64, 1500):
        torch.testing.assert_close(mechanism.chunked(q, k, v, chunk)[0], exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", GATED)
def test_a_gate_that_shuts_costs_the_later_ones_no_digits(name: str) -> None:
    mechanism: Any = mechanism_named(name)
    q, k, v = tokens(n=64, dtype=torch.float32)
    given = gates(k, 5 if name in CHANNELS else 1).float()
    given[..., 20, :] = -1e6
    exact = mechanism.unrolled(q.double(), k.double(), v.double(), log_gates=given.double())
    ours = mechanism(q, k, v, causal=True, log_gates=given)
    assert (ours - exact).abs().max() <= 32 * torch.finfo(torch.float32).eps * exact.abs().max()


@pytest.mark.parametrize("spelling", [each for each in SPELLINGS if "unit_keys=no" not in each])
@pytest.mark.parametrize("scale", [100.0, -100.0])
def test_large_logits_are_borne(spelling: str, scale: float) -> None:
    """Logits of ±10,000, with the gradients they leave. Long keys as they are break delta, by its formula."""
    mechanism = recurrent(spelling)
    for n in (1, 30):
        shape = (1, 2, n, 1)
        q, k = torch.full(shape, 100.0), scale * torch.ones(shape)
        k[:, 1] *= (-1.0) ** torch.arange(n)[:, None]
        v = tokens(n=n, features=1, dtype=torch.float32)[2][:1, :2]
        leaves = [x.requires_grad_() for x in (q, k, v)]
        for out in (mechanism.chunked(*leaves, 16)[0], mechanism.unrolled(*leaves)):
            assert out.isfinite().all()
            assert all(g.isfinite().all() for g in torch.autograd.grad(out.sum(), leaves))


def test_zero_tokens_are_answered_with_zero(mechanism: RecurrentMechanism) -> None:
    """Zero queries and keys say nothing; only a softmax window still averages."""
    q, k, v = tokens(n=9)
    q, k = (torch.zeros_like(x).requires_grad_() for x in (q, k))
    out = mechanism(q, k, v, causal=True)
    assert out.isfinite().all()
    if mechanism.family == "recurrent":
        assert (out == 0).all()
    assert all(g.isfinite().all() for g in torch.autograd.grad(out.sum(), (q, k)))


def test_no_tokens(mechanism: RecurrentMechanism) -> None:
    q, k, v = tokens(n=0)
    for out in (mechanism(q, k, v, causal=True), mechanism.unrolled(q, k, v)):
        assert out.shape == v.shape


def test_what_is_refused(mechanism: RecurrentMechanism) -> None:
    q, k, v = tokens()
    assert mechanism.causality is Causality.ALWAYS
    assert mechanism_named(mechanism.spelled).parameters == mechanism.parameters
    for form in (mechanism, mechanism.definition):
        with pytest.raises(UsageError, match="only looks back; call it with causal=True"):
            form(q, k, v)
        with pytest.raises(UsageError, match="does not accept counts"):
            form(q, k, v, torch.ones(37), causal=True)
        with pytest.raises(UsageError, match="reads a query with each key; there are 3 and 37"):
            form(q[..., :3, :], k, v, causal=True)
    with pytest.raises(UsageError, match="chunk=0 is no number of tokens"):
        mechanism.chunked(q, k, v, 0)


@pytest.mark.parametrize(
    ("spelling", "line"),
    [
        ("retention:decay=0", "decay=0 is out of range; decay must be above 0, up to 1"),
        ("retention:decay=1.5", "decay=1.5 is out of range; decay must be above 0, up to 1"),
        ("gla:gate=2", "gate=2 is out of range; gate must be key, or above 0, up to 1"),
        ("ssd:gate=query", "gate=query is not a number"),
        ("delta:beta=3", "beta=3 is out of range; beta must be above 0, up to 2"),
        ("gated-delta:gate=0", "gate=0 is out of range; gate must be key, or above 0, up to 1"),
        ("kda:gate=2", "gate=2 is out of range; gate must be key, or above 0, up to 1"),
        ("deltaproduct:factors=0", "factors=0 is out of range; factors must be 1 or more"),
        ("deltaproduct:beta=3", "beta=3 is out of range; beta must be above 0, up to 2"),
        ("rwkv7:rate=2", "rate=2 is out of range; rate must be 0 to 1"),
        ("mesanet:ridge=0", "ridge=0 is out of range; ridge must be 1e-12 to 1e12"),
        ("log-linear:levels=1", "levels=1 is out of range; levels must be 2 to 53"),
        ("log-linear:share=2", "share=2 is out of range; share must be 0 to 1"),
        ("multiscale-retention:decay=2", "decay=2 is out of range; decay must be scales, or above 0, up to 1"),
        ("gated-delta:beta=0", "beta=0 is out of range; beta must be above 0, up to 2"),
        ("causal-linear:normalised=maybe", "normalised=maybe is neither yes nor no"),
        ("window-linear:size=0", "size=0 is out of range; size must be 1 or more"),
    ],
)
def test_parameters_out_of_range(spelling: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        mechanism_named(spelling)
    assert str(caught.value) == line


@pytest.mark.parametrize("name", GATED)
def test_gates_that_are_none(name: str) -> None:
    mechanism: Any = mechanism_named(name)
    q, k, v = tokens()
    with pytest.raises(UsageError, match=f"log_gates of {name} must have shape"):
        mechanism(q, k, v, causal=True, log_gates=gates(k, 2))
    for bad in (0.5, torch.nan):
        with pytest.raises(UsageError, match=f"log_gates of {name} must be at most 0, as logs of"):
            mechanism(q, k, v, causal=True, log_gates=gates(k, 5 if name in CHANNELS else 1) * 0 + bad)
