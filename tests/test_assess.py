"""Report cards, the atlas and measured cost."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import torch

from separatrix.assess import CostCurve, Disagreement, assess, bench, likenesses, measure, standings
from separatrix.assess.atlas import atlas
from separatrix.assess.cost import Cost, tokens
from separatrix.assess.memory import peak_bytes
from separatrix.contract import wrap
from separatrix.contract.load import mechanism_from
from separatrix.mechanisms import Linear, Power, Softmax, mechanism_named
from separatrix.parameters import UsageError
from separatrix.reports import atlas as atlas_page
from separatrix.reports import card as card_page

SHORT = (64, 128, 256)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short lengths: what is tested here is not how fast this machine is."""
    monkeypatch.setattr("separatrix.assess.card.measure", lambda mechanism: measure(mechanism, SHORT, 8))
    monkeypatch.setattr("separatrix.assess.standing.NEAR", (200, 300, 400))
    monkeypatch.setattr("separatrix.assess.standing.DRAWS", 20)


def test_peak_memory_counts_what_is_held_at_once() -> None:
    x = torch.zeros(1000, dtype=torch.float64)
    assert peak_bytes(lambda: x + 1) == 8000
    assert peak_bytes(lambda: (x + 1) + 1) == 16000
    assert peak_bytes(lambda: [x + i for i in range(3)]) == 24000
    assert peak_bytes(lambda: x.view(10, 100)) == 0


def test_memory_grows_as_it_must() -> None:
    linear, power = (measure(each, (512, 1024, 2048), 16) for each in (Linear(), Power(beta=2)))
    assert linear.exponent(lambda cost: cost.peak_bytes) == pytest.approx(1, abs=0.05)
    assert power.exponent(lambda cost: cost.peak_bytes) == pytest.approx(2, abs=0.1)


def test_operations_are_counted_for_fused_attention_too() -> None:
    cost = measure(Softmax(), (256,), 64).costs[0]
    assert cost.flops == 2 * 2 * 256 * 256 * 64


def test_crossover_is_where_it_stays_faster() -> None:
    def curve(*seconds: float) -> CostCurve:
        return CostCurve("x", 8, tuple(Cost(n, s, 0, 0) for n, s in zip((1, 2, 4, 8), seconds, strict=True)))

    slow = curve(2, 2, 2, 2)
    assert curve(3, 1, 3, 1).crossover(slow) == 8
    assert curve(3, 3, 1, 1).crossover(slow) == 4
    assert curve(1, 1, 1, 3).crossover(slow) is None
    assert curve(1, 1, 1, 1).crossover(slow) == 1


def test_what_is_wrong_gets_no_numbers() -> None:
    class Off(Softmax):
        name = "off"

        def __call__(self, q, k, v, counts=None, causal=False):  # type: ignore[no-untyped-def]
            return super().__call__(q, k, v, counts, causal) * 1.001

    (found,) = bench([Off()])
    assert isinstance(found, Disagreement)
    assert "off by 0.001" in found.what


def test_standings_of_the_two_units() -> None:
    softmax, linear = ({s.name: s for s in standings(each)} for each in (Softmax(), Linear()))
    assert softmax["spike, ones"].verdict.word == "distinguishes"
    assert linear["spike, ones"].verdict.word == "blind"
    assert softmax["spike, ones"].blind_from is None
    assert linear["spike, ones"].blind_from == 1000
    growth = [each["spike, ones"].growth for each in (softmax, linear)]
    assert [round(g.exponent, 2) for g in growth if g is not None] == [0, -1]


def test_likeness_knows_its_own() -> None:
    assert likenesses(mechanism_named("identity-features"))[0].mechanism == "linear"
    assert likenesses(mechanism_named("based"))[0].mechanism == "taylor:order=2"
    nearest = likenesses(mechanism_named("retention:decay=1"))[0]
    assert nearest.mechanism == "causal-linear"
    assert nearest.distance < 1e-9


@pytest.mark.usefixtures("quick")
def test_a_card_for_a_strangers_function(tmp_path: Path) -> None:
    card = assess(wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "mine"), [Linear()])
    assert card.contract.holds
    assert card.likenesses[0].mechanism == "softmax"
    assert card.likenesses[0].distance < 1e-9
    assert "keeps the contract" in card.reading
    shown = json.loads(json.dumps(card.as_json(), allow_nan=False))
    assert set(shown) >= {"mechanism", "contract", "constructions", "cost"}
    card_page.write(card, tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text()
    assert "mine" in page
    assert "http" not in page


@pytest.mark.usefixtures("quick")
def test_a_card_names_what_is_broken() -> None:
    def leaks(q, k, v, causal=False):  # type: ignore[no-untyped-def]
        return (q @ k.mT).softmax(-1) @ v

    card = assess(wrap(leaks))
    assert "causality" in card.contract.failed
    assert "breaks the contract" in card.reading


def test_the_atlas_in_every_form(tmp_path: Path) -> None:
    found = atlas([Softmax(), Linear()])
    rows = list(csv.DictReader(io.StringIO(found.as_csv())))
    assert len(rows) == 2 * len(found.constructions)
    assert rows[0]["verdict"] == "distinguishes"
    for ending in atlas_page.ENDINGS:
        atlas_page.write(found, tmp_path / f"atlas{ending}")
        assert (tmp_path / f"atlas{ending}").stat().st_size > 100
    assert "http" not in (tmp_path / "atlas.html").read_text()


def test_tokens_are_the_same_each_time() -> None:
    assert torch.equal(tokens(8)[0], tokens(8)[0])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nowhere:Thing", "there is no module nowhere here"),
        ("mine_ok:Thng", r"mine_ok has no Thng \(did you mean Thing\?\)"),
        ("mine_ok:number", "number is not callable"),
        ("mine_ok:two", "cannot be called as"),
        ("mine_bad:x", "importing mine_bad fails: ValueError: oh"),
        ("mine_needs:x", "importing mine_needs needs not_there, which is not installed"),
        ("sofmax", r"no mechanism sofmax \(did you mean softmax\?\)"),
    ],
)
def test_what_cannot_be_loaded(
    text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_ok.py").write_text(
        "number = 3\ndef two(q, k): return q\nclass Thing:\n    def __call__(self, q, k, v): return v\n"
    )
    (tmp_path / "mine_bad.py").write_text("raise ValueError('oh')\n")
    (tmp_path / "mine_needs.py").write_text("import not_there\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=complaint):
        mechanism_from(text)
    assert mechanism_from("mine_ok:Thing").spelled == "mine_ok:Thing"
