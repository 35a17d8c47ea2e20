"""The weights of a module are part of its identity: others never share a stored cell."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import separatrix as sx
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import mechanism_from, mechanism_named
from separatrix.mechanisms.custom import wrap
from separatrix.mechanisms.features.hedgehog import Hedgehog
from separatrix.mechanisms.weights import held_by, mark
from separatrix.sweeps.plan import Plan, read_plan
from separatrix.sweeps.run import run
from separatrix.sweeps.store import Store, open_store, results
from sweep_tools import HEAD, Inline

MODULE = """
from pathlib import Path

import torch

class Sharp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sharpness = torch.nn.Parameter(torch.tensor(SHARPNESS, dtype=torch.float64))

    def forward(self, q, k, v):
        return (self.sharpness * (q @ k.mT)).softmax(-1) @ v

one, two, same = Sharp(), Sharp(), Sharp()
two.load_state_dict({"sharpness": torch.tensor(0.01)})
drawn = Sharp()
drawn.load_state_dict({"sharpness": torch.rand(())})
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'results.db'}", create=True)


@pytest.fixture
def home(tmp_path: Path) -> str:
    """The name of a module that no other test has."""
    return f"sharp_{tmp_path.name}"


@pytest.fixture
def weights(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that the module reads its weights from, as one loads a checkpoint."""
    saved = tmp_path / "weights.txt"
    saved.write_text("1.0")
    module = MODULE.replace("SHARPNESS", f"float(Path({str(saved)!r}).read_text())")
    (tmp_path / f"{home}.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    return saved


def plan(home: str, *attributes: str) -> Plan:
    names = [f"{home}:{each}" for each in attributes]
    text = HEAD.replace('"softmax", "linear"', ", ".join(f'"{name}"' for name in names))
    return read_plan(text + '[[sweep]]\nengine = "dense"\ndraws = 5\nparameters.n = 100', allow=names)


def test_other_weights_are_another_cell(
    home: str, weights: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same name and the same code, a checkpoint that was changed: it is computed again."""
    assert run(plan(home, "one", "two"), store, Inline()).done == 2
    again = Inline()
    assert run(plan(home, "one", "two"), store, again).kept == 2
    assert not again.taken
    weights.write_text("0.01")
    monkeypatch.delitem(sys.modules, home)
    assert run(plan(home, "one", "two"), store, again).kept == 1
    assert [cell.mechanism for batch in again.taken for cell in batch.items] == [mechanism_from(f"{home}:one").spelled]
    rows = results(store).rows(named=True)
    assert len({row["mechanism"] for row in rows}) == 3
    margins = {row["margin"] for row in rows if ":one" in row["mechanism"]}
    assert len(margins) == 2


def test_a_worker_with_other_weights_refuses(
    home: str, weights: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = plan(home, "one")
    weights.write_text("0.01")
    monkeypatch.delitem(sys.modules, home)
    with pytest.raises(UsageError, match=f"{home}:one has other weights here") as told:
        run(asked, store, Inline())
    assert "\n" not in str(told.value)


class Sharp(nn.Module):
    """Attention with weights, and with a number that is none."""

    def __init__(self, sharpness: float = 1.0, power: int = 1) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(sharpness))
        self.power = power

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (self.sharpness**self.power * (q @ k.mT)).softmax(-1) @ v


net = Sharp(5.0)


def by_global(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return net(q, k, v)


def test_equal_weights_are_spelled_alike_and_others_are_not() -> None:
    one, same, other, powered = (wrap(Sharp(*each)).spelled for each in ((1.0,), (1.0,), (2.0,), (1.0, 2)))
    assert one == same
    assert len({one, other, powered}) == 3
    assert one.startswith("Sharp@")
    module = Sharp()
    mine = wrap(module)
    with torch.no_grad():
        module.sharpness.fill_(2.0)
    assert mine.spelled == other
    module.register_buffer("kept", torch.zeros(2), persistent=False)
    assert mine.spelled != other


def test_results_follow_the_weights() -> None:
    module = Sharp()
    mine, x = wrap(module), torch.rand(1, 1, 4, 3)
    before = mine(x, x, x)
    with torch.no_grad():
        module.sharpness.fill_(30.0)
    assert not torch.allclose(mine(x, x, x), before)
    assert torch.equal(mine(x, x, x), module(x, x, x))


def test_weights_are_found_in_what_is_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(module: nn.Module) -> object:
        return lambda q, k, v: module(q, k, v)

    def bound(module: nn.Module) -> object:
        return module.forward

    def held(module: nn.Module) -> object:
        return partial(lambda q, k, v, net: net(q, k, v), net=module)

    for made in (closed, bound, held):
        one, same, other = (mark(held_by(made(Sharp(each)))) for each in (1.0, 1.0, 2.0))
        assert one == same != other, made
        assert one
    before = wrap(by_global).spelled
    monkeypatch.setitem(by_global.__globals__, "net", Sharp(6.0))
    assert wrap(by_global).spelled != before
    assert wrap(lambda q, k, v: v, "plain").spelled == "plain"


def test_learned_maps_are_spelled_otherwise() -> None:
    one, other = (Hedgehog.with_weight(scale * torch.eye(3)).spelled for scale in (1, 2))
    assert len({one, other, Hedgehog().spelled}) == 3
    assert Hedgehog().spelled == "hedgehog"


def test_a_spelling_with_its_mark_is_read_again(home: str, weights: Path) -> None:
    found = mechanism_from(f"{home}:one")
    assert mechanism_from(found.spelled).spelled == found.spelled
    assert found.spelled.startswith(f"{home}:one@")
    with pytest.raises(UsageError, match=f"{home}:one has other weights here"):
        mechanism_from(f"{home}:one@0123456789ab")
    with pytest.raises(UsageError, match="softmax has other weights here"):
        mechanism_from("softmax@0123456789ab")
    assert mechanism_named("softmax").spelled == "softmax"


def test_a_verdict_says_which_weights() -> None:
    point = {"n": 100, "d": 12, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}
    found = [
        sx.verdict("spike", Sharp(each).double(), engine="dense", sampling=sx.Sampling(draws=5), **point)
        for each in (1.0, 0.01)
    ]
    assert found[0].as_json()["mechanism"] != found[1].as_json()["mechanism"]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(1.5),
        torch.ones(2, 3).mT,
        torch.tensor([True, False]),
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, dtype=torch.complex64),
        torch.ones(0),
        torch.ones(2, requires_grad=True),
    ],
)
def test_every_kind_of_tensor_has_a_mark(tensor: Tensor) -> None:
    assert mark({"w": tensor}) == mark({"w": tensor.clone()}) != mark({"x": tensor})
    assert mark({"w": tensor}) != mark({"w": tensor[None]})
    if tensor.numel():
        assert mark({"w": tensor}) != mark({"w": ~tensor if tensor.dtype is torch.bool else -tensor})
