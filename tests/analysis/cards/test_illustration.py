"""The picture of a construction says what its tokens, the mechanisms and the reader say."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from separatrix.analysis.cards.illustration import SEED, Illustration, illustrate
from separatrix.cli import illustrated
from separatrix.cli.application import run
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.errors import UsageError
from separatrix.exact.reader import FourLayerNetwork, fires
from separatrix.exact.verdicts import verdict
from separatrix.mechanisms import mechanism_named
from separatrix.pages.illustration import draw
from separatrix.pages.paper import save_figure

SAMPLED = "rough"
"""Its verdict takes seconds, and is partial."""


@pytest.fixture(scope="module", params=CONSTRUCTIONS)
def found(request: pytest.FixtureRequest) -> Illustration:
    return illustrate(request.param)


def test_tokens_are_those_of_the_construction(found: Illustration) -> None:
    kind = CONSTRUCTIONS[found.construction]
    construction = kind.read(kind.example)
    for label, rows in zip((0, 1), found.tokens, strict=True):
        tokens = construction.dense(label, 0, torch.float64)
        assert [rows[0].first, rows[-1].last] == [1, len(tokens.keys)]
        assert all(a.last + 1 == b.first for a, b in pairwise(rows))
        for row in rows:
            for place in {row.first - 1, row.last - 1}:
                for heading, cell in zip(found.columns, row.cells, strict=bool(row.cells)):
                    if heading == "logit":
                        unit = math.log(construction.n) if found.logit_unit else 1
                        literal = sum(map(float.__mul__, tokens.queries[0].tolist(), tokens.keys[place].tolist()))
                        assert cell == pytest.approx(literal / unit)
                    elif heading != "⋯":
                        assert tokens.values is not None
                        carried = float(tokens.values[place, int(heading) - 1])
                        assert cell == pytest.approx(carried / construction.unit)


def test_what_differs_is_marked_on_both_sides(found: Illustration) -> None:
    before, after = found.tokens
    for a, b in zip(before, after, strict=True):
        if found.differences:
            assert a.tokens == b.tokens
            assert a.changed == b.changed == tuple(x != y and x == x for x, y in zip(a.cells, b.cells, strict=True))
        else:
            assert a.cells == b.cells
    assert any(any(row.changed) for row in after) == bool(found.differences)
    assert found.differences or before[-1].last != after[-1].last


def test_weights_and_neurons_are_those_of_the_network(found: Illustration) -> None:
    kind = CONSTRUCTIONS[found.construction]
    construction = kind.read(kind.example)
    for picture in found.mechanisms:
        mechanism = mechanism_named(picture.mechanism)
        network = FourLayerNetwork.draw(mechanism, construction, SEED)
        for label, weights in zip((0, 1), picture.weights, strict=True):
            assert (picture.fire_counts[label] > 0) == fires(network, construction, label)
            if mechanism.is_normalised:
                assert sum(weights[0]) == pytest.approx(1)


def test_it_shows_what_the_verdict_says(found: Illustration) -> None:
    if found.construction == SAMPLED:
        pytest.skip("the verdict is sampled")
    for picture in found.mechanisms:
        example = CONSTRUCTIONS[found.construction].example
        word = verdict(found.construction, picture.mechanism, **example).word
        assert picture.tells_apart == (word == "distinguishes")


def test_it_fits_a_terminal(found: Illustration, capsys: pytest.CaptureFixture[str]) -> None:
    illustrated.show(found)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= illustrated.MAX_WIDTH
    fired = [int(line.split()[-4]) for line in lines if line.endswith(" fire")]
    assert fired == [count for picture in found.mechanisms for count in picture.fire_counts]


@pytest.mark.parametrize("name", ["spike", "duplication", "rough"])
def test_it_is_drawn(name: str) -> None:
    figure = draw(illustrate(name))
    assert save_figure(figure, "svg").startswith(b"<?xml")


def test_list_shows_it_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "constructions", "level"]) == 0
    assert "9 of 12 fire" in capsys.readouterr().out
    assert run(["list", "constructions", "level", "--out", str(tmp_path / "level.png")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "level.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", [["constructions"], ["mechanisms", "softmax"], ["sweeps"]])
def test_other_lists_have_no_picture(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="write: separatrix list constructions spike --out"):
        run(["list", *words, "--out", str(tmp_path / "x.svg")])


def test_an_ending_that_is_no_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="let it end in one of"):
        run(["list", "constructions", "spike", "--out", str(tmp_path / "x.html")])
    assert list(tmp_path.iterdir()) == []
