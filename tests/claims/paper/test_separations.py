"""The two-way table: who beats whom, with which evidence."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from separatrix.claims.paper.separations import PaperSeparation, PointAnswer, collect_answers, find_separations
from separatrix.claims.separations import UNNORMALISED
from separatrix.constructions import CONSTRUCTIONS
from separatrix.pages.reproduction_page import separations_section

FEW = ("softmax", "linear", UNNORMALISED)


@pytest.fixture(scope="module")
def answers() -> list[PointAnswer]:
    return collect_answers(FEW)


@pytest.fixture(scope="module")
def rows(answers: list[PointAnswer]) -> list[PaperSeparation]:
    return find_separations(answers)


def beats(rows: list[PaperSeparation], winner: str, loser: str) -> set[str]:
    return {row.construction.name for row in rows if (row.winner.mechanism, row.loser.mechanism) == (winner, loser)}


def test_every_construction_is_asked(answers: list[PointAnswer]) -> None:
    assert {answer.verdict.construction.name for answer in answers} == set(CONSTRUCTIONS)


def test_both_directions(rows: list[PaperSeparation]) -> None:
    assert beats(rows, UNNORMALISED, "softmax") == {"duplication", "dispersion", "regression"}
    assert beats(rows, "linear", "softmax") == {"majority"}
    assert beats(rows, "softmax", "linear") >= {"spike", "plain", "cross", "injectivity", "parity", "recall"}
    assert beats(rows, UNNORMALISED, "linear")
    assert not any(row.winner.mechanism == row.loser.mechanism for row in rows)


def test_words_and_evidence_are_those_of_the_verdicts(rows: list[PaperSeparation]) -> None:
    for row in rows:
        assert row.winner.verdict.construction is row.loser.verdict.construction
        assert row.winner.verdict.outcome.interval[1] >= 0.99
        assert row.loser.verdict.outcome.interval[0] <= 0.01
        assert not row.winner.equal_rows
    proved_pairs = {(row.name, row.loser.mechanism) for row in rows if row.loser.equal_rows}
    assert proved_pairs == {
        ("injectivity", "linear"),
        ("parity", "linear"),
        ("duplication", "softmax"),
        ("duplication", "linear"),
    }


def test_a_row_says_it_in_words(rows: list[PaperSeparation]) -> None:
    (row,) = (x for x in rows if x.name == "duplication" and x.loser.mechanism == "softmax")
    assert row.sentence == (
        f"{UNNORMALISED} beats softmax on duplication: {UNNORMALISED} distinguishes (closed P = 0.9998), "
        "softmax is blind (rows proved equal: no reader)"
    )


def test_neither_partial_nor_undecided_is_a_separation(answers: list[PointAnswer]) -> None:
    winner = next(answer for answer in answers if answer.word == "distinguishes")
    outcome = replace(winner.verdict.outcome, p0=0.0, only=0.0, interval=(0.0, 0.5), distinguish=0.2)
    unsure = replace(winner, verdict=replace(winner.verdict, outcome=outcome))
    assert unsure.word == "undecided"
    assert find_separations([winner, unsure]) == []


def test_rows_are_json(rows: list[PaperSeparation]) -> None:
    read = json.loads(json.dumps([row.as_json() for row in rows], allow_nan=False))
    assert len(read) == len(rows)
    assert {row["winner"]["verdict"] for row in read} == {"distinguishes"}
    assert {row["loser"]["verdict"] for row in read} == {"blind", "saturated"}
    assert all(row["winner"]["engine"] and row["parameters"]["n"] for row in read)


def test_the_section_shows_every_answer_and_every_win(answers: list[PointAnswer], rows: list[PaperSeparation]) -> None:
    page_section = separations_section(answers)
    markup = page_section.body
    assert markup.count("<b ") == len(answers)
    assert len(re.findall('<span(?: class="proved")? title=', markup)) == len(rows)
    pairs = {(row.winner.mechanism, row.loser.mechanism) for row in rows}
    assert markup.count('<span class="dot') == len(pairs)
    assert markup.count('class="proved"') == sum(row.loser.equal_rows for row in rows)
    assert page_section.title.endswith("beats softmax on dispersion, duplication, majority, regression")
    for tag in ("table", "tr", "td", "th", "span", "b", "small", "p"):
        assert len(re.findall(f"<{tag}[ >]", markup)) == markup.count(f"</{tag}>")


def test_nothing_is_claimed_of_nothing() -> None:
    assert separations_section([]).title.endswith("no mechanism of the linear family beats softmax")
