"""Weights that are drawn when a user's own is made come from a seed, and nobody else's numbers move."""

from __future__ import annotations

import pickle
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from separatrix.core.errors import UsageError
from separatrix.layers import Attention, Model
from separatrix.mechanisms.custom import CustomMechanism, with_call_options, wrap
from separatrix.mechanisms.drawn_weights import seeded
from separatrix.mechanisms.load import mechanism_from

MODULE = """
import numpy as np
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.map = nn.Linear(width, width, bias=False)
    def forward(self, q, k, v):
        return (self.map(q) @ self.map(k).mT).softmax(-1) @ v

class ByNumpy:
    def __init__(self):
        self.map = torch.from_numpy(np.random.randn(3, 3))
    def __call__(self, q, k, v):
        return (q @ k.mT).softmax(-1) @ v + self.map.mean()

class Plain(Net):
    def __init__(self):
        super().__init__()
        self.map.weight.data.fill_(1)

class Constant:
    def __call__(self, q, k, v):
        return (q @ k.mT).softmax(-1) @ v

class SeedsItself(Net):
    def __init__(self):
        torch.manual_seed(5)
        super().__init__()

class WithSeed(nn.Module):
    def __init__(self, seed=1):
        super().__init__()
        self.seed = seed
    def forward(self, q, k, v):
        return self.seed * (q @ k.mT).softmax(-1) @ v

def make(width=8, sharp=False, twice=False):
    return Net(width)

def make_of(dim):
    return Net(dim)

def breaks():
    raise KeyError("no such file of weights")

def attend(q, k, v, seed=2):
    return seed * (q @ k.mT).softmax(-1) @ v

net = Net()
"""


@pytest.fixture(autouse=True)
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs_drawn.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "theirs_drawn", raising=False)


def weights(name: str) -> Tensor:
    found = mechanism_from(f"theirs_drawn:{name}")
    assert isinstance(found, CustomMechanism)
    return found.attend.map if "ByNumpy" in name else found.attend.map.weight  # type: ignore[attr-defined]


def states() -> tuple[object, ...]:
    return str(np.random.get_state()), torch.get_rng_state().tolist()


@pytest.mark.parametrize("name", ["Net", "ByNumpy", "make", "make:width=4", "make_of:dim=4"])
def test_the_same_weights_every_time_whatever_was_drawn_before(name: str) -> None:
    before = states()
    first, spelled = weights(name), mechanism_from(f"theirs_drawn:{name}").spelled
    assert states() == before
    torch.rand(3), np.random.rand(3)
    del sys.modules["theirs_drawn"]
    assert weights(name).equal(first)
    assert "seed=0@" in spelled
    assert mechanism_from(spelled).spelled == spelled
    other = f"{name}{',' if ':' in name else ':'}seed=3"
    assert not weights(other).equal(first)
    assert "seed=3@" in mechanism_from(f"theirs_drawn:{other}").spelled


def test_what_is_made_while_importing_is_the_same_in_every_process() -> None:
    first = weights("net")
    del sys.modules["theirs_drawn"]
    torch.rand(3)
    assert weights("net").equal(first)


def test_a_seed_is_given_as_the_other_words_are() -> None:
    by_word = mechanism_from("theirs_drawn:Net:width=4,seed=3")
    assert mechanism_from("theirs_drawn:Net:width=4", seed=3).spelled == by_word.spelled
    kind = sys.modules["theirs_drawn"].Net
    drawn = mechanism_from(kind, seed=3)
    assert isinstance(drawn, CustomMechanism)
    assert drawn.typed == "Net:seed=3"
    assert drawn.attend.map.weight.equal(weights("Net:seed=3"))  # type: ignore[attr-defined]
    back = pickle.loads(pickle.dumps(drawn))
    assert back.spelled == drawn.spelled
    assert with_call_options(drawn, {"scale": "sqrt"}).spelled == drawn.spelled.replace(":seed=3", ":scale=sqrt,seed=3")


def test_weights_of_the_first_call_are_drawn_from_the_seed() -> None:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.LazyLinear(4)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return (self.map(q) @ self.map(k).mT).softmax(-1) @ v  # type: ignore[no-any-return]

    made = [mechanism_from(each, seed=seed) for each in (Lazy, Lazy()) for seed in (None, 0, 3)]
    assert len({each.spelled for each in made}) == 2
    assert [each.spelled.partition("@")[0] for each in made[:3]] == [f"Lazy:seed={x}" for x in (0, 0, 3)]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Constant:seed=3", "theirs_drawn:Constant draws no random weights when it is created, so seed=3"),
        ("SeedsItself:seed=3", "draws no random weights"),
        ("net:seed=3", "theirs_drawn:net is made already, so a seed would change nothing; name the class"),
        ("Net:seed=-1", "seed=-1 is out of range"),
        ("Net:seed=x", "seed=x"),
        ("make:sead=3", r"no parameter of theirs_drawn:make called sead \(did you mean seed\?\)"),
        ("make_of", "cannot be called as"),
        ("breaks", r"makes one, and that fails: KeyError: .*\(line \d+ of theirs_drawn.py: raise KeyError"),
    ],
)
def test_a_seed_that_changes_nothing_is_refused(name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        mechanism_from(f"theirs_drawn:{name}")


def test_a_seed_of_their_own_is_theirs() -> None:
    one = torch.ones(1, 1, 2, 3, dtype=torch.float64)
    for name, factor in {"WithSeed": 1, "WithSeed:seed=4": 4, "attend": 2, "attend:seed=4": 4}.items():
        found = mechanism_from(f"theirs_drawn:{name}")
        assert found(one, one, one).flatten()[0] == factor
        assert found.spelled.partition("@")[0] == f"theirs_drawn:{name}"


def test_ours_have_no_weights_to_draw() -> None:
    with pytest.raises(UsageError, match="softmax is not made with a seed of weights; leave seed out"):
        mechanism_from("softmax", seed=3)
    with pytest.raises(UsageError, match="is made already"):
        wrap(nn.Identity(), how={"seed": 3})


def test_the_generator_of_python_is_put_back() -> None:
    before = random.getstate()
    with seeded(3):
        first = random.random()
    assert random.getstate() == before
    with seeded(3):
        assert random.random() == first


def test_what_seeds_itself_uses_no_seed_of_ours() -> None:
    with seeded(3) as draws:
        torch.manual_seed(4)
        torch.rand(2)
    assert not draws.used
    with seeded(3) as draws:
        torch.rand(2, generator=torch.Generator().manual_seed(1))
    assert not draws.used


def test_layers_draw_their_own() -> None:
    """Two layers start from different weights, and those of a layer follow torch's generator."""
    torch.manual_seed(1)
    first = Model("theirs_drawn:Net", 8, 1, depth=2, outputs=2, features=3, causal=False)
    torch.manual_seed(1)
    again = Model("theirs_drawn:Net", 8, 1, depth=2, outputs=2, features=3, causal=False)
    maps = [x for name, x in first.named_parameters() if "map.weight" in name]
    assert len(maps) == 2
    assert not maps[0].equal(maps[1])
    assert all(x.equal(dict(again.named_parameters())[name]) for name, x in first.named_parameters())
    layer = Attention("theirs_drawn:Net:seed=3", 8, 1, causal=False)
    assert layer.attend.map.weight.equal(weights("Net:seed=3"))


def test_a_layer_makes_lazy_weights_for_its_width() -> None:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.LazyLinear(4)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return (self.map(q) @ self.map(k).mT).softmax(-1) @ v  # type: ignore[no-any-return]

    out, _ = Attention(Lazy(), 24, 2, causal=False)(torch.zeros(1, 5, 24))
    assert out.shape == (1, 5, 24)
