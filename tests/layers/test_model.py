"""Blocks and a small model: shapes, caches, equal weights, training."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from separatrix.core.parameters import UsageError
from separatrix.layers import Block, Model
from separatrix.mechanisms import Causality, examples, mechanism_named

SOME = ["softmax", "elu", "gla", "gated-delta", "retention", "window-linear:size=3", "hedgehog"]


def model(mechanism: Any, seed: int = 0, **options: Any) -> Model:
    torch.manual_seed(seed)
    options = {"depth": 2, "outputs": 5, "vocabulary": 7, "conv": 3, **options}
    return Model(mechanism, 12, 3, **options).double()


def symbols(n: int = 9, batch: int = 2) -> Tensor:
    return torch.randint(7, (batch, n), generator=torch.Generator().manual_seed(n))


@pytest.mark.parametrize("spelling", SOME)
@pytest.mark.parametrize("mlp", [None, 4])
def test_a_model_decodes_as_it_reads(spelling: str, mlp: int | None) -> None:
    made, x = model(spelling, mlp=mlp, rope=10000), symbols()
    present = torch.tensor([[True] * 9, [False] * 4 + [True] * 5])
    whole, _ = made(x, present)
    assert whole.shape == (2, 9, 5)
    prompt, cache = made(x[:, :6], present[:, :6])
    rows = [prompt]
    for t in range(6, 9):
        out, cache = made(x[:, t : t + 1], cache=cache)
        rows.append(out)
    torch.testing.assert_close(torch.cat(rows, dim=1)[present], whole[present])
    torch.testing.assert_close(whole[1:, 4:], made(x[1:, 4:])[0])


@pytest.mark.parametrize("spelling", [each.spelled for each in examples()])
def test_initial_weights_of_all_blocks_are_equal_for_a_seed(spelling: str) -> None:
    causal = mechanism_named(spelling).causality is not Causality.NEVER
    length = {"length": 9} if "linformer" in spelling else {}
    reference = model("softmax").state_dict()
    found = model(spelling, causal=causal, **length).state_dict()
    assert all(torch.equal(found[name], weight) for name, weight in reference.items())
    assert all(".learned." in name for name in found.keys() - reference.keys())
    learned = [name for name in found if ".blocks.0." in f".{name}" and ".learned." in name]
    for name in learned:
        other = found[name.replace("blocks.0", "blocks.1")]
        given = "W_" in name or (spelling == "rwkv7" and name.endswith((".bias", "removal.weight")))
        assert not torch.equal(found[name], other) or bool((other == other.flatten()[0]).all()) or given


def test_continuous_inputs_and_no_norms() -> None:
    made = model("softmax", vocabulary=None, features=4, norm=False, mlp=None, out_norm=False)
    out, cache = made(torch.randn(2, 9, 4, dtype=torch.float64))
    assert out.shape == (2, 9, 5)
    assert len(cache) == 2
    assert not [name for name in made.state_dict() if "norm" in name]
    assert made.state_bytes(9) == sum(block.state_bytes(9) for block in made.blocks)


def test_counts_are_those_of_the_parts() -> None:
    made = model("delta")
    inside = 12 * 36 + 36 * 3 + 4 + 12 * 12 + 12 * 3 + 2 * 12 + 12 * 48 + 48 + 48 * 12 + 12
    assert [block.parameter_count for block in made.blocks] == [inside, inside]
    assert made.parameter_count == 2 * inside + 7 * 12 + 12 + 12 * 5 + 5
    assert made.state_bytes(3) == made.state_bytes(300)


@pytest.mark.parametrize("spelling", SOME)
def test_gradients_reach_every_parameter(spelling: str) -> None:
    made, x = model(spelling), symbols(20, 8)
    functional.cross_entropy(made(x)[0].flatten(0, 1), x.flatten() % 5).backward()
    for name, weight in made.named_parameters():
        assert weight.grad is not None, name
        assert (weight.grad != 0).any(), name


@pytest.mark.parametrize("spelling", ["softmax", "gated-delta"])
def test_a_model_learns_to_repeat_the_last_symbol(spelling: str) -> None:
    """Which no model without a look at the token before can."""
    made = model(spelling, outputs=7, depth=1).float()
    optimizer = torch.optim.AdamW(made.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        x = torch.randint(7, (16, 12), generator=generator)
        loss = functional.cross_entropy(made(x)[0][:, 1:].flatten(0, 1), x[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.2


class Sharp(nn.Module):
    """Attention with a weight of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.ones(()))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        logits = self.sharpness * (q @ k.mT)
        return logits.masked_fill(torch.ones_like(logits).triu(1) > 0, -torch.inf).softmax(-1) @ v


def test_each_block_has_a_copy_of_a_module() -> None:
    made = model(Sharp())
    inner = [block.attention.attend for block in made.blocks]
    assert inner[0] is not inner[1]
    torch.testing.assert_close(made(symbols())[0], model("softmax")(symbols())[0])


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (lambda: Model("softmax", 12, 3, depth=1, outputs=2), "give either vocabulary, for symbols, or"),
        (lambda: model("softmax", features=3), "give either vocabulary"),
        (lambda: model("softmax", vocabulary=0), "vocabulary=0 must be a whole number, 1 or more"),
        (lambda: model("softmax", vocabulary=None, features=-1), "features=-1 must be a whole number"),
        (lambda: model("softmax", depth=0), "depth=0 must be a whole number"),
        (lambda: Block("softmax", -8, 2), "width=-8 must be a whole number"),
        (lambda: model("softmax")(symbols(), cache=model("softmax")(symbols())[1][0]), "one for each of 2"),
        (lambda: model("softmax", mlp=-1), "mlp=-1 must be a whole number"),
        (lambda: model("softmax")(symbols().double()), "x must be symbols, int64 of shape"),
        (lambda: model("softmax")(symbols() + 1), "x has symbols outside 0 to 6; vocabulary=7"),
        (
            lambda: model("softmax", vocabulary=None, features=4)(torch.zeros(2, 9, 5)),
            r"x must have shape \(batch, tokens, 4\)",
        ),
        (lambda: model("softmax")(symbols(), cache=[]), "one for each of 2 blocks"),
    ],
)
def test_bad_input_is_said_in_one_line(asked: Any, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as told:
        asked()
    assert "\n" not in str(told.value)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="hedas"):
        Block("softmax", 12, 3, hedas=4)


def test_layers_are_not_loaded_by_others() -> None:
    program = "import sys, separatrix; print('separatrix.layers' in sys.modules, 'torch' in sys.modules); "
    program += "separatrix.layers.Attention; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]
