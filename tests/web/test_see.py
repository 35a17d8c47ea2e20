"""The picture that the first screen asks for."""

from __future__ import annotations

import json

import pytest

from command_server import run
from documents import require_document
from explorer import Explorer
from separatrix.analysis.cards.illustration import illustrate_at


def test_the_picture_is_that_of_the_library(explorer: Explorer) -> None:
    found = explorer.get("/see/spike/softmax,power:beta=4?n=1e18&a1=0.9&--seed=7")
    made = illustrate_at("spike", "softmax,power:beta=4", {"n": "1e18", "a1": "0.9"}, seed=7)
    assert found == json.loads(json.dumps(made.as_json()))
    require_document("illustration", found)


@pytest.mark.parametrize("point", ["spike/softmax,linear?n=1e9", "duplication/linear", "plain/softmax?n=200"])
def test_p_is_that_of_the_command(explorer: Explorer, point: str) -> None:
    words = point.replace("/", " ").replace("?", " ").split()
    printed = json.loads(run("verdict", *words, "--json").stdout)
    verdicts = printed if isinstance(printed, list) else [printed]
    for pictured, verdict in zip(explorer.get(f"/see/{point}")["mechanisms"], verdicts, strict=True):
        for name in ("verdict", "distinguish", "interval", "engine", "evidence"):
            assert pictured["chance"][name] == verdict[name]
        assert pictured["bits"] == verdict["bits"]


def test_signs_are_one_draw_and_p_is_over_all(explorer: Explorer) -> None:
    one, other = (explorer.get(f"/see/spike/softmax?m=4&--seed={seed}")["mechanisms"][0] for seed in (0, 1))
    assert one["readings"] != other["readings"]
    assert one["chance"] == other["chance"]


def test_what_takes_draws_has_no_p_here(explorer: Explorer) -> None:
    found = explorer.get("/see/spike/softmax,retention?n=300")["mechanisms"]
    assert found[0]["chance"] is not None
    assert found[1]["chance"] is None
    assert "retention has no scalar kernel" in found[1]["no_chance"]


def test_n_is_moved_to_where_it_may_be(explorer: Explorer) -> None:
    found = explorer.get("/see/spike/linear?n=1060")
    assert found["parameters"]["n"] == 1100
    assert "n=1060 is rounded to a multiple of d−2" in found["moved"]


@pytest.mark.parametrize(
    ("path", "said", "field"),
    [
        ("/see/spike/softmax?a0=3", "a0=3 must be smaller than a1=1.2", "a0"),
        ("/see/spike/softmax?n=many", "n=many", "n"),
        ("/see/spike/softmax?q=1", "q", None),
        ("/see/spike/softmax?--seed=-1", "--seed=-1 is not a whole number", "--seed"),
        ("/see/spike/softmax?--seed=99999999999999999999", "seed=99999999999999999999 is out of range", "seed"),
        ("/see/spike/softmax?--engine=exact", "--engine is no option here", "--engine"),
        ("/see/spike/softmax?m=1e6", "m=1,000,000 is more neurons than a picture has", "m"),
        ("/see/spike/retention?n=1e6", "retention needs every token", "n"),
        ("/see/spikey/softmax", "spike", None),
        ("/see/spike/os:system", "own mechanisms are named where the page is started", None),
    ],
)
def test_what_is_wrong_is_said_in_a_line(explorer: Explorer, path: str, said: str, field: str | None) -> None:
    refusal = explorer.refusal(path)
    assert said in refusal["error"]
    assert "\n" not in refusal["error"]
    if field is not None:
        assert refusal["field"] == field
