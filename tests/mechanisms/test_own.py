"""A user's own mechanism is called the way it was made, and what goes wrong in it is told as theirs."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix.core.errors import UsageError, describe_failure
from separatrix.mechanisms import Causality, Softmax
from separatrix.mechanisms.custom import CustomMechanism, wrap
from separatrix.mechanisms.load import mechanism_from
from separatrix.mechanisms.logits import measure_logit_scale

SDPA = "torch.nn.functional:scaled_dot_product_attention"
WITHOUT_SCALE = {"scale": "sqrt"}


class Projected(nn.Module):
    """Learned projections of every kind, with biases."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = self.q(q), self.k(k), self.v(v)
        return self.out((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v)  # type: ignore[no-any-return]


class MergedHeads(nn.Module):
    """Takes as many heads as it was made with: they are merged before a projection."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.mix = nn.Linear(dim, dim)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        batch, heads, tokens, width = q.shape
        out = (q @ k.mT).softmax(-1) @ v
        merged = self.mix(out.transpose(1, 2).reshape(batch, tokens, -1))
        return merged.reshape(batch, tokens, heads, width).transpose(1, 2)  # type: ignore[no-any-return]


class Lazy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.LazyLinear(16)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (self.map(q) @ self.map(k).mT).softmax(-1) @ v  # type: ignore[no-any-return]


def without_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    assert q.ndim == 3, "batch, tokens, width"
    return (q @ k.transpose(1, 2)).softmax(-1) @ v


def custom(source: Any, **how: Any) -> CustomMechanism:
    found = mechanism_from(source, **how)
    assert isinstance(found, CustomMechanism)
    return found


def tokens(width: int, features: int = 3, length: int = 9) -> tuple[Tensor, Tensor, Tensor]:
    drawn = torch.Generator().manual_seed(5)
    q, k = torch.randn((2, 1, 1, length, width), generator=drawn, dtype=torch.float64)
    return q, k, torch.randn((1, 1, length, features), generator=drawn, dtype=torch.float64)


@pytest.mark.parametrize("causal", [False, True])
def test_the_attention_of_torch_is_softmax_with_its_scale_undone(causal: bool) -> None:
    attend, (q, k, v) = custom(SDPA, scale="sqrt"), tokens(16)
    assert attend.causality is Causality.EITHER
    assert torch.allclose(attend(q, k, v, causal=causal), Softmax()(q, k, v, causal=causal))
    assert not torch.allclose(custom(SDPA)(q, k, v, causal=causal), Softmax()(q, k, v, causal=causal))
    assert torch.allclose(custom(SDPA, scale="4")(q, k, v), Softmax()(q, k, v))


def test_how_it_is_called_is_part_of_its_name() -> None:
    assert custom(SDPA, scale="sqrt").spelled == f"{SDPA}:scale=sqrt"
    again = custom(f"{SDPA}:width=8,scale=0.5")
    assert (again.spelled, again.fixed_width) == (f"{SDPA}:width=8,scale=0.5", 8)
    back = pickle.loads(pickle.dumps(again))
    assert (back.spelled, back.fixed_width) == (again.spelled, 8)


@pytest.mark.parametrize("features", [1, 24, 50])
def test_padding_and_undoing_projections_leave_attention(features: int) -> None:
    """What is read of a module with learned projections is what its weights of the tokens make of values."""
    module = Projected()
    q, k, v = tokens(5, features)
    found = wrap(module).attend_any_size(q, k, v)
    inside = module.double()
    padded = [nn.functional.pad(x, (0, 19)) for x in (q, k)]
    logits = inside.q(padded[0]) @ inside.k(padded[1]).mT / 24**0.5
    assert torch.allclose(found, logits.softmax(-1) @ v, atol=1e-9)
    with pytest.raises(UsageError, match="takes width 24, and queries and keys have 30 here"):
        wrap(module).attend_any_size(*tokens(30))


def test_nothing_is_padded_unless_asked() -> None:
    with pytest.raises(UsageError, match="takes width 24, not 5"):
        wrap(Projected())(*tokens(5))


def test_a_width_that_is_a_multiple_of_eight() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert q.shape[-1] % 8 == 0, "multiples of 8"
        return (q @ k.mT).softmax(-1) @ v

    for width in (3, 8, 30, 102):
        q, k, v = tokens(width)
        assert torch.allclose(wrap(attend).attend_any_size(q, k, v), Softmax()(q, k, v))


def test_heads_are_found_in_the_module() -> None:
    found = custom(MergedHeads(32, 4))
    assert (found.fixed_width, found.fixed_heads) == (8, 4)
    assert custom(MergedHeads(32, 4), heads=2).fixed_width == 16
    with pytest.raises(UsageError, match="calling MergedHeads with width 5 failed: it raised RuntimeError"):
        custom(MergedHeads(32, 4), width=5)


def test_tokens_without_heads() -> None:
    found, (q, k, v) = wrap(without_heads), tokens(4)
    q, k, v = (x.expand(2, 3, -1, -1) * torch.arange(1, 4)[:, None, None] for x in (q, k, v))
    assert torch.allclose(found.attend_any_size(q, k, v), Softmax()(q, k, v))
    assert not found.takes_counts


def test_weights_that_the_first_call_makes() -> None:
    module = Lazy()
    found = custom(module)
    assert (found.fixed_width, found.fixed_features) == (64, None)
    assert found.spelled == custom(Lazy()).spelled
    assert custom(module, width=12).fixed_width == 12
    assert isinstance(module.map.weight, nn.UninitializedParameter)  # the user's own is not touched


@pytest.mark.parametrize("first", [False, True])
def test_multihead_attention_of_torch(first: bool) -> None:
    inner = nn.MultiheadAttention(12, 1, batch_first=first).double().eval()
    found = wrap(inner)
    assert found.causality is Causality.EITHER
    assert (found.fixed_width, found.fixed_heads) == (12, 1)
    q, k, v = tokens(12, 12)
    given = [x[:, 0] if first else x[:, 0].transpose(0, 1) for x in (q, k, v)]
    expected = inner(*given)[0]
    assert torch.allclose(found(q, k, v)[:, 0], expected if first else expected.transpose(0, 1))
    later = v.clone()
    later[..., 5:, :] += 1
    assert torch.allclose(found(q, k, v, causal=True)[..., :5, :], found(q, k, later, causal=True)[..., :5, :])
    weights = inner(*given)[1]
    assert torch.allclose(found.attend_any_size(q, k, v)[0, 0], weights[0] @ v[0, 0], atol=1e-9)


def test_several_heads_that_are_mixed_are_not_read() -> None:
    with pytest.raises(UsageError, match=r"mixes values: .* make it with one head"):
        wrap(nn.MultiheadAttention(12, 3)).attend_any_size(*tokens(4))


def test_classes_are_made_with_words() -> None:
    found = custom("torch.nn:MultiheadAttention", width=16, heads=2)
    assert found.spelled.startswith("torch.nn:MultiheadAttention:embed_dim=16,num_heads=2,seed=0@")
    assert custom("torch.nn:MultiheadAttention:embed_dim=8,num_heads=2").fixed_width == 8
    needs = r"is a class; give an instance, or what it needs: torch.nn:MultiheadAttention:embed_dim=…,num_heads=…"
    with pytest.raises(UsageError, match=needs):
        mechanism_from("torch.nn:MultiheadAttention")
    with pytest.raises(UsageError, match=r"no parameter of torch.nn:MultiheadAttention called depth"):
        mechanism_from("torch.nn:MultiheadAttention:embed_dim=8,num_heads=2,depth=3")


@pytest.mark.parametrize("scale", ["0", "-1", "many"])
def test_a_scale_is_positive(scale: str) -> None:
    with pytest.raises(UsageError, match="scale="):
        mechanism_from(SDPA, scale=scale)


def test_ours_are_called_as_they_are() -> None:
    with pytest.raises(UsageError, match="softmax takes tokens of any width and heads; leave width out"):
        mechanism_from("softmax", width=3)


def test_an_error_is_told_with_their_line_and_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs_raising.py").write_text("def attend(q, k, v):\n    return q @ k  # no transpose\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError) as error:
        mechanism_from("theirs_raising:attend")(*tokens(4))
    told = describe_failure(error.value)
    assert re.match(r"raised RuntimeError: .*\(line 2 of theirs_raising.py: return q @ k # no transpose; ", told)
    assert told.endswith("called with q (1, 1, 9, 4), k (1, 1, 9, 4), v (1, 1, 9, 3), float64)")
    with pytest.raises(ValueError, match="returned") as wrong:
        wrap(lambda q, k, v: (q @ k.mT) @ v[..., :1])(*tokens(4))
    assert describe_failure(wrong.value).startswith(
        "returned (1, 1, 9, 1) where a tensor of shape (1, 1, 9, 3) was due ("
    )


def test_their_line_is_the_last_of_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs_sized.py").write_text(
        "from torch import nn\n\nclass Sized(nn.Module):\n    def __init__(self, dim):\n"
        "        super().__init__()\n        self.q = nn.Linear(dim, dim)\n"
    )
    (tmp_path / "theirs_torn.py").write_text("def attend(q, k, v)\n    return v\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError) as inside:
        mechanism_from("theirs_sized:Sized:dim=x")
    assert str(inside.value).endswith("(line 6 of theirs_sized.py: self.q = nn.Linear(dim, dim))")
    with pytest.raises(UsageError) as torn:
        mechanism_from("theirs_torn:attend")
    assert str(torn.value).endswith("fails: SyntaxError: expected ':' (theirs_torn.py, line 1)")


def test_a_word_that_nobody_takes_is_told_with_each_name_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs_headed.py").write_text("class Headed:\n    def __init__(self, heads=2): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"called bogus; there are: heads, width, scale, seed$"):
        mechanism_from("theirs_headed:Headed:bogus=1")


def test_a_layer_of_one_input_is_told_what_is_missing() -> None:
    with pytest.raises(UsageError, match="give what it calls with them"):
        wrap(lambda x: x)


@pytest.mark.parametrize(
    ("attend", "factor", "undone_by"),
    [
        (lambda q, k, v: (q @ k.mT).softmax(-1) @ v, None, ""),
        (lambda q, k, v: (0.5 * q @ k.mT).softmax(-1) @ v, 0.5, "2"),
        (nn.functional.scaled_dot_product_attention, 0.125, "sqrt"),
        (lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).sigmoid() @ v, 0.125, "sqrt"),
        (lambda q, k, v: (q @ k.mT).sigmoid() @ v, None, ""),
        (lambda q, k, v: q @ (k.mT @ v) / (q @ k.sum(-2)[..., None]), None, ""),
        (lambda q, k, v: (q @ k.mT / 2).tril().softmax(-1) @ v, 0.5, "2"),
    ],
)
def test_a_hidden_scale_of_logits_is_seen(attend: Any, factor: float | None, undone_by: str) -> None:
    found = measure_logit_scale(custom(attend)).scale
    assert (None if found is None else round(found.factor, 9)) == factor
    if found is not None:
        assert found.undone_by == undone_by
        assert f"--scale {undone_by} undoes it" in found.words
        assert measure_logit_scale(custom(attend, scale=undone_by)).scale is None


def test_a_hidden_scale_is_seen_behind_one_width_and_projected_values() -> None:
    class Values(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v = nn.Linear(9, 9)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return nn.functional.scaled_dot_product_attention(q, k, self.v(v))

    found = measure_logit_scale(custom(Values(), width=9)).scale
    assert found is not None
    assert (round(found.factor, 9), found.width, found.undone_by) == (round(1 / 3, 9), 9, "sqrt")


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (lambda v: None, r"returned nothing where a tensor of shape \(1, 1, 9, 3\) was due"),
        (lambda v: [v], "returned a list where"),
        (lambda v: 3, "returned an int where"),
        (lambda v: v.flip(-2).float(), r"returned float32 where float64 was due, .*; use \.to\(q\.dtype\)"),
        (lambda v: v.transpose(1, 2), r"returned \(1, 9, 1, 3\) where .* due; heads come before tokens"),
        (lambda v: sys.exit(3), r"tried to end the program: sys\.exit\(3\)"),
    ],
)
def test_what_a_wrong_result_is_told_as(made: Any, complaint: str) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return made(v)

    with pytest.raises(ValueError, match=complaint) as wrong:
        wrap(attend)(*tokens(4))
    assert describe_failure(wrong.value).endswith(
        "called with q (1, 1, 9, 4), k (1, 1, 9, 4), v (1, 1, 9, 3), float64)"
    )
