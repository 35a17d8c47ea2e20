"""The atlas and cards of the page are those of the commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from command_server import run
from explorer import Explorer, running
from separatrix.pages.verdict_words import COLOURS, INKS
from separatrix.web.app import STATIC

LINES = "application/json, application/x-ndjson"
OWN = """
def attend(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
"""


def printed(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def streamed(explorer: Explorer, path: str) -> tuple[list[Any], Any]:
    """The steps of an answer that takes its time, and the answer."""
    lines = explorer.send(f"/api/v1{path}", accept=LINES).body.splitlines()
    *steps, last = map(json.loads, lines)
    return [each["step"] for each in steps], last["result"]


@pytest.fixture(scope="module")
def with_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.py").write_text(OWN)
    with running("--mechanism", "mine.py:attend", cwd=folder) as found:
        yield found


def test_the_table_of_the_atlas_has_every_mechanism_and_construction(explorer: Explorer) -> None:
    table = explorer.get("/atlas/table")
    listed = explorer.get("/looks")
    assert [each["mechanism"] for each in table["mechanisms"]] == [each["spelled"] for each in listed]
    assert {each["construction"] for each in table["constructions"]} == {
        each["name"] for each in explorer.get("/list/constructions")
    }
    some = explorer.get("/atlas/table?--family=sparse&--constructions=spike&--sort=spike,identity")
    assert {each["family"] for each in some["mechanisms"]} == {"sparse"}
    assert [each["name"] for each in some["constructions"]] == ["spike, ones", "spike, identity"]


def test_cells_are_those_of_the_command(explorer: Explorer) -> None:
    words = ("--mechanisms", "linear,power:beta=2", "--constructions", "spike,injectivity", "--sort", "spike")
    query = "--mechanisms=linear,power:beta=2&--constructions=spike,injectivity&--sort=spike"
    found = explorer.get(f"/atlas?{query}")
    assert found == printed("atlas", *words)
    assert [each["mechanism"] for each in found[::3]] == ["power:beta=2", "linear"]


def test_what_closed_forms_answer_at_once_is_the_beginning_of_the_cells(explorer: Explorer) -> None:
    whole = explorer.get("/atlas?--mechanisms=linear&--constructions=spike,injectivity,rough")
    quick = explorer.get("/atlas/verdicts?--mechanisms=linear&--constructions=spike,injectivity,rough")
    closed = [each for each in whole if each["kind"] != "sampled"]
    assert len(closed) == 3
    assert len(whole) == 4
    assert quick == [{name: each[name] for name in quick[0]} for each in closed]
    assert "rescued_by" not in quick[0]
    assert explorer.get("/atlas/verdicts?--mechanisms=gla") == []
    known = len(explorer.get("/atlas/known")["verdicts"])
    query = "--mechanisms=linear&--constructions=spike,injectivity,rough"
    for sort in ("name", "seen", "spike"):
        assert explorer.get(f"/atlas/verdicts?{query}&--sort={sort}") == quick
    assert len(explorer.get("/atlas/known")["verdicts"]) == known


def test_cells_that_were_computed_are_known(explorer: Explorer) -> None:
    cells = explorer.get("/atlas?--mechanisms=relu&--constructions=injectivity")
    verdicts = explorer.get("/atlas/verdicts?--mechanisms=relu&--constructions=level")
    known = explorer.get("/atlas/known")
    assert cells[0] in known["cells"]
    assert verdicts[0] in known["verdicts"]


def test_the_atlas_goes_on_while_others_are_answered(explorer: Explorer) -> None:
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(explorer.get, "/atlas?--mechanisms=relu&--constructions=spike,rough")
        answered = 0
        while not slow.done():
            explorer.get(f"/verdict/spike/softmax?n={1000 + 100 * answered}")
            answered += 1
        assert len(slow.result()) == 3
    # A verdict that had to wait for the atlas would be the only one.
    assert answered > 3, "the atlas held verdicts up, or was done before anybody asked"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/atlas/table?--sort=spik", ["atlas", "--sort", "spik"]),
        ("/atlas/verdicts?--sort=os:system", ["atlas", "--sort", "os:system"]),
        ("/atlas?--mechanisms=softmax&--sort=os:system", ["atlas", "--sort", "os:system"]),
        ("/atlas/table?--constructions=plain&--sort=spike", ["atlas", "--constructions", "plain", "--sort", "spike"]),
        ("/atlas/verdicts?--mechanisms=sofmax", ["atlas", "--mechanisms", "sofmax"]),
        ("/mechanism/softmax?--scale=2", ["assess", "softmax", "--scale", "2"]),
        ("/assess/softmax?--against=liner", ["assess", "softmax", "--against", "liner"]),
    ],
)
def test_what_is_wrong_is_said_as_the_command_says_it(explorer: Explorer, path: str, words: list[str]) -> None:
    said = run(*words).stderr.rpartition("separatrix: ")[2].split()
    assert said == explorer.refusal(path)["error"].split()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/atlas", "936 cells, more than the page makes at once"),
        ("/atlas?n=3", "n= is no option of the atlas"),
        ("/atlas?--mechanisms=os:system", "os:system is not registered"),
        ("/atlas/verdicts?--mechanisms=mine.py:attend", "mine.py:attend is not registered"),
        ("/assess/os:system", "os:system is not registered"),
        ("/assess/softmax?--against=os:system", "os:system is not registered"),
        ("/assess/softmax,linear", "are several mechanisms"),
        ("/assess/softmax?--width=wide", "--width=wide is no whole number"),
        ("/mechanism/os:system", "os:system is not registered"),
        ("/mechanism/softmax?--against=linear", "--against is no option here"),
    ],
)
def test_what_a_page_may_not_ask_is_refused(explorer: Explorer, path: str, said: str) -> None:
    assert said in explorer.refusal(path)["error"]


@pytest.mark.exhaustive
def test_a_card_comes_as_far_as_it_is_and_is_the_commands(explorer: Explorer) -> None:
    steps, card = streamed(explorer, "/assess/linear")
    cards = [each["card"] for each in steps if "card" in each]
    assert [len(each["constructions"]) for each in cards[:3]] == [0, 1, 2]
    assert not any(each["finished"] for each in cards)
    assert card["finished"]
    assert steps[1]["what"] == "linear: contract"
    assert all(0 <= each["done"] <= each["total"] for each in steps[1:])
    for each in cards:
        assert each["contract"] == card["contract"]
        assert each["constructions"].items() <= card["constructions"].items()
    wanted = printed("assess", "linear")
    measured = ("cost", "reading")
    assert {name: card[name] for name in card if name not in measured} == {
        name: wanted[name] for name in wanted if name not in measured
    }
    assert card["reading"].split(" Its time")[0] == wanted["reading"].split(" Its time")[0]
    assert explorer.get("/assess/linear") == card, "the second time it is not measured again"


def test_the_contract_alone_is_the_quick_cards(explorer: Explorer) -> None:
    assert explorer.get("/assess/linear?--quick=yes") == printed("assess", "linear", "--quick")


def test_a_heading_tells_what_is_listed_and_special_cases(explorer: Explorer) -> None:
    found = explorer.get("/mechanism/power:beta=4")
    assert found["mechanism"] == "power:beta=4"
    assert found["listed"] == printed("list", "mechanisms", "power")
    lattice = printed("list", "mechanisms", "--lattice")
    assert found["special_cases"] == [edge for edge in lattice if edge["special"] == "power:beta=1"]
    nested = explorer.get("/mechanism/softmax:temperature=1%2F4")
    assert nested["mechanism"] == "softmax:temperature=0.25"
    relu = explorer.get("/mechanism/identity-features")["special_cases"]
    assert [edge["special"] for edge in relu] == ["relu", "identity-features", "causal-linear"]


def test_ones_own_comes_first_and_its_hidden_scale_is_told(with_own: Explorer) -> None:
    first, second = with_own.get("/atlas/table")["mechanisms"][:2]
    assert (first["asked_as"], first["mechanism"], first["own"]) == ("mine.py:attend", "mine:attend", True)
    assert not second["own"]
    assert not any(each["own"] for each in with_own.get("/atlas/table?--family=sparse")["mechanisms"])
    heading = with_own.get("/mechanism/mine.py:attend")
    assert heading["calling"][0].startswith("It divides its logits by sqrt(width)")
    assert with_own.get("/mechanism/mine.py:attend?--scale=sqrt")["calling"] == []
    assert with_own.refusal("/mechanism/mine.py:other")["error"].startswith("mine.py:other is not registered")
    cell = with_own.get("/atlas?--mechanisms=mine.py:attend&--constructions=parity")[0]
    assert (cell["mechanism"], cell["kind"]) == ("mine:attend", "sampled")


def test_verdicts_have_the_colours_of_every_figure() -> None:
    style = Path(STATIC / "mechanisms.css").read_text()
    for word in ("distinguishes", "partial", "blind", "undecided"):
        found = re.search(rf"^\.{word} {{ background: (\S+); color: (\S+); }}$", style, re.MULTILINE)
        assert found is not None
        assert [each.lower() for each in found.groups()] == [COLOURS[word].lower(), INKS[word].lower()]
