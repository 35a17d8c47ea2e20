"""Report cards, the atlas and measured cost."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

import separatrix as sx
from documents import require_document, require_result
from separatrix.analysis.cards.assessment import _find_changed_verdicts, assess
from separatrix.analysis.cards.atlas import Atlas, AtlasRow, atlas
from separatrix.analysis.cards.card import Card, describe_neighbours
from separatrix.analysis.cards.construction_result import (
    ConstructionResult,
    NoConstructionResult,
    compute_result,
    find_rescue,
    reference_points,
)
from separatrix.analysis.cards.neighbours import find_neighbours
from separatrix.analysis.cards.outcomes import at_length
from separatrix.analysis.costs.cost import bench, draw_tokens, find_disagreement, measure, peak_bytes
from separatrix.analysis.costs.curves import CostCurve, Disagreement
from separatrix.analysis.laws.costs import cost_law
from separatrix.cli.cards import _print_atlas
from separatrix.constructions import CONSTRUCTIONS, Construction
from separatrix.contract import CHECKS, Examination
from separatrix.core.parameters import UsageError
from separatrix.exact.verdicts import verdict
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax, mechanism_named
from separatrix.mechanisms.calling import calling_of
from separatrix.mechanisms.custom import wrap
from separatrix.mechanisms.decoding import CACHE, STATE
from separatrix.mechanisms.load import mechanism_from
from separatrix.mechanisms.recurrent.causal_linear import CausalLinear
from separatrix.pages import atlas as atlas_page
from separatrix.pages import card as card_page
from separatrix.pages.plots import suffixes

SHORT = (64, 128, 256)
FEW = {name: CONSTRUCTIONS[name] for name in ("spike", "plain")}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, few_checks: None) -> None:
    """Few checks, constructions, lengths and draws: what is tested here is how they become a card."""
    monkeypatch.setattr("separatrix.analysis.costs.cost.LENGTHS", SHORT)
    monkeypatch.setattr("separatrix.analysis.cards.construction_result.LITERAL_LENGTHS", "200:400:3")
    monkeypatch.setattr("separatrix.exact.engines.sampling.LITERAL", 25)
    monkeypatch.setattr("separatrix.analysis.cards.construction_result.CONSTRUCTIONS", FEW)


def test_peak_memory_counts_what_is_held_at_once() -> None:
    x = torch.zeros(1000, dtype=torch.float64)
    assert peak_bytes(lambda: x + 1) == 8000
    assert peak_bytes(lambda: (x + 1) + 1) == 16000
    assert peak_bytes(lambda: [x + i for i in range(3)]) == 24000
    assert peak_bytes(lambda: x.view(10, 100)) == 0


def test_memory_grows_as_it_must() -> None:
    linear, power = (measure(each, (512, 1024, 2048), 16) for each in (Linear(), Power(beta=2)))
    found = [law.exponent for each in (linear, power) if (law := cost_law(each, "peak_bytes"))]
    assert found == [pytest.approx(1, abs=0.05), pytest.approx(2, abs=0.1)]


def test_operations_are_counted_for_fused_attention_too() -> None:
    cost = measure(Softmax(), (256,), 64).costs[0]
    assert cost.flops == 2 * 2 * 256 * 256 * 64


def test_crossover_is_where_it_stays_faster() -> None:
    def curve(*seconds: float) -> CostCurve:
        zeros = (0,) * len(seconds)
        return CostCurve("x", 8, (1, 2, 4, 8), seconds, zeros, zeros, zeros, CACHE)

    slow = curve(2, 2, 2, 2)
    assert curve(3, 1, 3, 1).crossover(slow) == 8
    assert curve(3, 3, 1, 1).crossover(slow) == 4
    assert curve(1, 1, 1, 3).crossover(slow) is None
    assert curve(1, 1, 1, 1).crossover(slow) == 1


def test_what_is_wrong_gets_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.analysis.costs.cost.LENGTHS", SHORT)

    class Off(Softmax):
        name = "off"

        def __call__(self, q, k, v, counts=None, causal=False):  # type: ignore[no-untyped-def]
            return super().__call__(q, k, v, counts, causal) * 1.001

    (found,) = bench([Off()]).costs
    assert isinstance(found, Disagreement)
    assert "off by 0.001" in found.disagreement


def test_what_is_wrong_at_the_edges_of_runs_gets_no_numbers() -> None:
    class Forgets(CausalLinear):
        name = "forgets"

        def advance(self, state, q, k, v):  # type: ignore[no-untyped-def]
            after, out = super().advance(state, q, k, v)
            return tuple(0.9 * part for part in after), out

    assert "off by" in (find_disagreement(Forgets()) or "")
    assert find_disagreement(CausalLinear()) is None


def test_what_is_carried_from_token_to_token() -> None:
    """A recurrent state and sums of features do not grow; others would have to keep all k and v."""
    recurrent, window, full, sums, placed = (
        measure(mechanism_named(name), SHORT, 8)
        for name in ("retention", "window-linear", "softmax", "elu", "cosformer")
    )
    assert sums.state_is == STATE
    assert {cost.state_bytes for cost in sums.costs} == {8 * (8 + 1) * 4}
    assert placed.state_is == CACHE
    assert recurrent.state_is == window.state_is == STATE
    assert {cost.state_bytes for cost in recurrent.costs} == {8 * 8 * 4}
    assert window.costs[-1].state_bytes <= window.costs[-1].length * 8 * 8 * 4
    assert full.state_is == CACHE
    assert [cost.state_bytes for cost in full.costs] == [n * (8 + 8) * 4 for n in SHORT]


def test_bench_compares_with_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.analysis.costs.cost.LENGTHS", SHORT)
    found = bench([Softmax()])
    (shown,) = found.as_json()
    assert shown["faster_than_softmax_from"] is None
    assert shown["state_is"] == CACHE
    assert len(shown["state_bytes"]) == len(shown["lengths"])


def test_every_construction_has_its_points() -> None:
    found = reference_points()
    assert {"spike, ones", "spike, identity", "cross", "plain"} <= set(found)
    assert {point.name for point in found.values()} == set(CONSTRUCTIONS)
    assert found["spike, ones"].n == found["plain"].n == 1000


def answered(mechanism: Mechanism, name: str) -> ConstructionResult:
    found = compute_result(name, reference_points()[name], mechanism)
    assert isinstance(found, ConstructionResult)
    return found


def test_standings_of_the_two_units() -> None:
    softmax, linear = (answered(each, "spike, ones") for each in (Softmax(), Linear()))
    assert (softmax.word, linear.word) == ("distinguishes", "blind")
    assert softmax.point.kind == "certified"
    assert (softmax.blindness.blind_from_n, softmax.blindness.blind_searched_to) == (None, 10**12)
    assert [each.growth.law.name for each in (softmax, linear) if each.growth.law] == ["constant", "power law"]


@pytest.mark.parametrize("name", ["spike, identity", "plain"])
def test_where_it_goes_blind_is_exact_to_the_step(name: str) -> None:
    found = answered(Linear(), name)
    assert found.blindness.blind_from_n_is == "exact"
    assert found.blindness.blind_from_n is not None
    words = []
    for n in (found.blindness.blind_from_n - found.verdict.construction.step, found.blindness.blind_from_n):
        there = at_length(found.verdict.construction, n)
        assert there is not None
        words.append(verdict(there.name, Linear(), **there.parameters.as_json()).word)
    assert words[0] != "blind"
    assert words[1] == "blind"


def test_lengths_are_the_nearest_admissible_ones() -> None:
    point = reference_points()["spike, ones"]
    assert [there.n for n in (1, 149, 151, 300) if (there := at_length(point, n))] == [100, 100, 200, 300]
    plain = reference_points()["plain"]
    assert at_length(plain, 2) is None


def test_sampled_cells_stop_when_they_are_decided() -> None:
    partial = answered(mechanism_named("identity-features"), "spike, identity")
    blind = answered(mechanism_named("identity-features"), "spike, ones")
    assert (partial.word, blind.word) == ("partial", "blind")
    assert partial.point.kind == blind.point.kind == "sampled"
    for cell in (partial, blind):
        low, high = cell.verdict.outcome.interval
        exact = verdict("spike", "linear", **cell.verdict.construction.parameters.as_json()).outcome
        assert low <= exact.distinguish <= high
        assert " interim looks" in cell.verdict.outcome.evidence
        assert int(cell.verdict.outcome.evidence.split()[0]) < 6400


def test_what_a_mechanism_raises_is_an_answer() -> None:
    def late(q, k, v):  # type: ignore[no-untyped-def]
        if q.shape[-2] > 100:
            raise RuntimeError("too long\nfor me")
        return (q @ k.mT).softmax(-1) @ v

    found = compute_result("plain", reference_points()["plain"], wrap(late))
    assert isinstance(found, NoConstructionResult)
    assert found.evidence.startswith("it raised RuntimeError: too long for me (line ")
    assert "of test_cards.py: raise RuntimeError(" in found.evidence
    assert re.search(r"called with q \(\d+, 1, 1000, 1\)", found.evidence)
    assert found.is_broken


def test_a_strangers_function_is_attended_once_where_order_is_nothing_to_it() -> None:
    """The draws of softmax as a function are those at one place, and agree with the exact answer."""
    attended = []

    def mine(q, k, v):  # type: ignore[no-untyped-def]
        attended.append(q.shape)
        return (q @ k.mT).softmax(-1) @ v

    mechanism, point = wrap(mine), reference_points()["spike, identity"]
    found = compute_result("spike, identity", point, mechanism)
    assert isinstance(found, ConstructionResult)
    low, high = found.verdict.outcome.interval
    exact = verdict("spike", "softmax", **point.parameters.as_json()).outcome
    assert low <= exact.distinguish <= high
    assert found.word == "distinguishes"
    assert len(attended) < 60


def test_likeness_knows_its_own() -> None:
    nearest = find_neighbours(mechanism_named("identity-features"))
    assert "linear" in [each.mechanism for each in nearest if each.distance < 1e-9]
    assert find_neighbours(mechanism_named("based"))[0].mechanism == "taylor:order=2"
    nearest = find_neighbours(mechanism_named("retention:decay=1"))[0]
    assert nearest.mechanism == "causal-linear"
    assert nearest.distance < 1e-9


def test_one_that_only_looks_back_is_like_others_with_a_mask() -> None:
    def back(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q @ k.mT + torch.ones(q.shape[-2], k.shape[-2]).triu(1) * -1e9).softmax(-1) @ v

    nearest = find_neighbours(wrap(back, "back"))
    assert describe_neighbours(nearest, True) == "on the tokens tried it equals softmax with a causal mask."
    found = describe_neighbours(find_neighbours(mechanism_named("retention:decay=1")), True)
    assert found.startswith("on the tokens tried it equals causal-linear")
    assert "causal-linear with" not in found


@pytest.mark.usefixtures("quick")
def test_a_card_for_a_strangers_function(tmp_path: Path) -> None:
    card = assess(wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "mine"), [Linear()])
    assert card.contract.holds
    assert card.neighbours[0].mechanism == "softmax"
    assert card.neighbours[0].distance < 1e-9
    assert "keeps the contract" in card.reading
    shown = require_document("card", json.dumps(card.as_json(), allow_nan=False))
    assert set(shown) >= {"mechanism", "contract", "constructions", "cost"}
    require_result(card, tmp_path)
    card.save(tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text()
    assert "mine" in page
    assert "<code>separatrix assess mine --against linear</code>" in page
    assert "default-src 'none'" in page
    assert "http" not in page.partition("<script>")[0].replace("http-equiv", "")


@pytest.mark.usefixtures("quick")
def test_the_room_and_the_function_share_a_name() -> None:
    """`sx.assess` can be called before and after the room of that name is imported."""
    import separatrix as sx

    for _ in range(2):
        assert not sx.assess(lambda q, k, v: v[..., :1]).holds


@pytest.mark.usefixtures("quick")
def test_a_card_names_what_is_broken() -> None:
    def leaks(q, k, v, causal=False):  # type: ignore[no-untyped-def]
        return (q @ k.mT).softmax(-1) @ v

    card = assess(wrap(leaks))
    assert "causality" in card.contract.failed
    assert "breaks the contract" in card.reading
    assert not card.holds


@pytest.mark.usefixtures("quick")
def test_what_does_not_attend_gets_a_short_card() -> None:
    card = assess(lambda q, k, v: v * math.nan)
    assert set(card.contract.failed) == {"finite"}
    assert card.constructions == {}
    assert "nothing else was tried" in card.reading
    json.dumps(card.as_json(), allow_nan=False)
    assert "could not be called" in card_page.page(card)


@pytest.mark.parametrize("attend", [lambda q, k, v: (q @ k.mT).softmax(-1) @ v, lambda q, k, v: v[..., :1]])
def test_a_quick_card_has_the_checks_as_rows(attend: object, tmp_path: Path) -> None:
    card = assess(wrap(attend, "mine"), quick=True)
    found, rows = card.contract, card.rows()
    assert len(rows) == len(found.passed) + len(found.failed) + len(found.skipped) + len(found.not_tried)
    assert {row["check"] for row in rows if row["outcome"] == "broken"} == set(found.failed)
    assert card.to_frame().columns == ["mechanism", "check", "outcome", "why"]
    assert [each.get_text() for each in card.plot().get_yticklabels()] == [row["check"] for row in rows]
    assert ("keeps the contract" if card.holds else "breaks form") in repr(card)
    assert rows[0]["check"] in card._repr_html_()
    require_result(card, tmp_path)


@pytest.mark.usefixtures("quick")
def test_a_card_as_far_as_it_is(tmp_path: Path) -> None:
    known: list[Card] = []
    card = assess(Softmax(), [Linear()], on_update=known.append)
    assert [len(each.constructions) for each in known] == [0, 1, 2, 3, 3, 3]
    assert not any(each.finished for each in known)
    assert card.finished
    assert len(card.against) == 1
    assert all(each.contract == card.contract for each in known)
    assert [*card.constructions.items()][:2] == [*known[2].constructions.items()]
    for each in (known[0], known[2], known[-1]):
        assert each.reading.startswith("Not finished: ")
        assert each.progress_sentence in card_page.page(each)
        require_result(each, tmp_path)
    assert known[2].progress_sentence == "Not finished: 2 of 3 constructions were tested."
    assert "not finished" in repr(known[2])


@pytest.mark.usefixtures("quick")
def test_a_card_for_each_step_in_which_the_process_could_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.contract._base.CHECKS", {name: CHECKS[name] for name in ("form", "finite")})
    cards: list[Card] = []
    cause = "ended the process"
    card = assess(Softmax(), [Linear()], on_crash=lambda card_for: cards.append(card_for(cause)))
    in_contract, in_constructions = cards[:3], cards[3:6]
    assert [each.contract.failed for each in in_contract] == [{"form": cause}, {"form": cause}, {"finite": cause}]
    assert in_contract[1].contract.not_tried == {"finite": "form"}
    assert in_contract[2].contract.passed == ["form"]
    for place, each in enumerate(in_constructions):
        results = [*each.constructions.values()]
        assert results[:-1] == [*card.constructions.values()][:place]
        name = [*card.constructions][place]
        assert each.constructions[name] == results[-1] == NoConstructionResult(name, f"it {cause}", is_broken=True)
    likeness, cost, beside = cards[6:]
    assert [each.cost for each in (likeness, cost)] == [Disagreement("softmax", f"it {cause}")] * 2
    assert beside.against[-1].cost == Disagreement("linear", f"it {cause}")
    assert not any(each.finished for each in cards)
    assert not any(each.holds for each in cards[:6])
    for each in cards:
        assert cause in json.dumps(each.as_json())
        assert cause in card_page.page(each)


class Projected(torch.nn.Module):
    """Queries are mapped by weights of its own, so that a scale in it cannot be told from these."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(1, 1.1, 128))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(self.weight * q, k, v)


def test_a_card_says_which_verdicts_depend_on_a_scale_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = mechanism_from(Projected(), width=128)
    names = "spike, identity", "plain"
    words = dict(zip(names, ("partial", "distinguishes"), strict=True))
    changed = {"spike, identity": "distinguishes"}
    results = {}
    for name in names:
        base = compute_result(name, reference_points()[name], Softmax() if words[name] == "distinguishes" else Linear())
        assert isinstance(base, ConstructionResult)
        assert base.word == words[name]
        results[name] = base

    def answer(point: Construction, rescaled: Mechanism) -> SimpleNamespace:
        assert rescaled.parameters.scale == "sqrt"
        column = next(name for name in names if reference_points()[name].parameters == point.parameters)
        return SimpleNamespace(word={**words, **changed}[column])

    monkeypatch.setattr("separatrix.analysis.cards.assessment.verdict_at", answer)
    unmeasured = Disagreement(mechanism.spelled, "not measured")
    card = Card(calling_of(mechanism), Examination(), unmeasured, unmeasured, results)
    assert not card.calling.scale_known
    card = replace(card, changed_by_scale=_find_changed_verdicts(card))
    assert card.changed_by_scale == changed
    assert card.scale_sentence in card.reading
    assert card.scale_sentence == (
        "The scale of its logits could not be measured. If it divides them by sqrt(width), use --scale sqrt, "
        "which changes 1 verdict: spike, identity (partial → distinguishes)."
    )
    shown = card.as_json()["calling"]
    assert (shown["logit_scale_known"], shown["verdicts_with_scale_sqrt"]) == (False, changed)
    unchanged = replace(card, changed_by_scale={})
    assert unchanged.scale_sentence.endswith("--scale sqrt changes no verdict.")


def test_the_atlas_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.analysis.cards.construction_result.CONSTRUCTIONS", FEW)
    told = []
    found = atlas([Softmax(), Linear()], tell=lambda done, total, what: told.append((done, total, what)))
    assert told[-1] == (5, 6, "linear on plain")
    found.save(tmp_path / "two.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "two.csv").read_text())))
    assert len(rows) == 2 * len(found.constructions)
    assert (rows[0]["verdict"], rows[0]["kind"]) == ("distinguishes", "certified")
    refused = NoConstructionResult("plain", "no <engine> can", is_broken=False)
    found = Atlas((*found.mechanisms, AtlasRow(Power(beta=4), (*found.mechanisms[0].results[:2], refused))))
    for ending in suffixes("atlas"):
        found.save(tmp_path / f"atlas{ending}")
        assert (tmp_path / f"atlas{ending}").stat().st_size > 100
    page = (tmp_path / "atlas.html").read_text()
    assert "default-src 'none'" in page
    assert "http" not in page.partition("<script>")[0].replace("http-equiv", "")
    assert "no &lt;engine&gt; can" in page
    assert "– not computed: no engine answers here" in page
    assert "<h1>Softmax tells D0 from D1 on 3 of 3 constructions, more than the other 2 mechanisms</h1>" in page
    assert "n<sup>−1.00</sup>" in page
    assert json.loads((tmp_path / "atlas.json").read_text())[-1]["evidence"] == "no <engine> can"


@pytest.mark.exhaustive
def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes give what one gives; sampled cells too, since their draws are seeded."""
    only = {"routing": CONSTRUCTIONS["routing"]}
    routing = {"routing": reference_points()["routing"]}
    monkeypatch.setattr("separatrix.analysis.cards.atlas.reference_points", lambda: routing)
    monkeypatch.setattr("separatrix.analysis.cards.construction_result.CONSTRUCTIONS", only)
    chosen = [mechanism_named("window:size=4"), Linear()]
    assert atlas(chosen, workers=2).rows() == atlas(chosen).rows()


def test_tokens_are_the_same_each_time() -> None:
    assert torch.equal(draw_tokens(8)[0], draw_tokens(8)[0])


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
def test_what_cannot_be_loaded(text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mine_ok", raising=False)
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


SOME = ("spike", "injectivity", "duplication", "dispersion", "averaging", "spikes")


@pytest.fixture(scope="module")
def small() -> Atlas:
    return atlas("linear,softmax,elu,delta", ",".join(SOME[1:3]), sort="seen")


@pytest.mark.parametrize("name", SOME)
def test_a_blind_cell_says_who_else_tells_the_labels_apart_as_readers_does(name: str) -> None:
    for mechanism in ("linear", "softmax"):
        found = sx.readers(name, mechanism)
        saved = find_rescue(found.fixed)
        words = {(each.word.value, each.readers) for each in found.statements}
        tuned = found.threshold is not None and found.threshold.outcome.interval[0] >= 0.99
        if found.fixed.word == "distinguishes":
            assert saved is None
        elif ("cannot", "every reader of what attention returns") in words:
            assert saved is not None
            assert saved.by == "no reader"
        elif tuned or ("can", "linear readers of one row") in words:
            assert saved is not None
            assert saved.by == ("another threshold" if tuned else "a linear reader")


def test_the_atlas_marks_sorts_filters_and_explains(small: Atlas, capsys: pytest.CaptureFixture[str]) -> None:
    by = {(row["mechanism"], row["construction"]): row["rescued_by"] for row in small.rows()}
    assert by["linear", "injectivity"] == by["softmax", "duplication"] == "no reader"
    assert {by["delta", name] for name in ("injectivity", "duplication")} == {None}, "every token is needed"
    kernels = [row.mechanism.spelled for row in small.families["score kernel"]]
    assert kernels == ["softmax", "linear"], "what tells most apart first"
    _print_atlas(small)
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "X≡" in shown
    assert "1 injectivity: The query is q (D0) or a multiple of it (D1)" in shown
    assert "P partial: P between 0.01 and 0.99" in " ".join(shown.split())
    page = atlas_page.page(small)
    assert 'data-name="softmax" data-family="score kernel" data-seen="1"' in page
    only = atlas("softmax,elu,delta", "spikes", family="feature map,recurrent", sort="name")
    assert [row.mechanism.spelled for row in only.mechanisms] == ["delta", "elu"]
    with pytest.raises(sx.UsageError, match="there is no family recurent"):
        atlas("delta", "spikes", family="recurent")
    known = r"there is no order size .*there are: family, name, seen, spike, plain"
    with pytest.raises(sx.UsageError, match=known):
        atlas("delta", "spikes", sort="size")
