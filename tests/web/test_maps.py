"""What the page is told of a map beside its numbers: colours, lines, formulas, and what can be moved."""

from __future__ import annotations

import base64
import json
import struct
from itertools import product
from typing import Any

import numpy as np
import pytest

import separatrix as sx
from explorer import Explorer
from separatrix.constructions import CONSTRUCTIONS
from separatrix.constructions.lengths import admissible
from separatrix.core.parameters.ranges import read_counted
from separatrix.mechanisms import MECHANISMS
from separatrix.pages.bundle import read_ramps
from separatrix.pages.maps.figure import map_figure
from separatrix.pages.maps.scales import DIVERGING, SEQUENTIAL, quantity_levels

CELLS, LINES = "application/vnd.separatrix.cells", "application/x-ndjson"
Cells = dict[tuple[int, str], np.ndarray[Any, Any]]


def unpacked(body: bytes) -> tuple[dict[str, Any], Cells]:
    length, _ = struct.unpack("<II", body[:8])
    heading = json.loads(body[8 : 8 + length])
    cells = np.frombuffer(body[8 + length :], "<f8").reshape(-1, *heading["shape"])
    places = [(i, name) for i, layer in enumerate(heading["layers"]) for name in layer["arrays"]]
    return heading, dict(zip(places, cells, strict=True))


def asked(explorer: Explorer, words: str) -> tuple[dict[str, Any], Cells]:
    reply = explorer.send(f"/api/v1/map/spike/softmax,linear?{words}", accept=CELLS)
    assert reply.status == 200, reply.body
    return unpacked(reply.body)


@pytest.mark.parametrize("of", ["distinguish", "fire_d0", "fire_d1", "margin", "bits", "accuracy:noise=0.5"])
@pytest.mark.parametrize("difference", [False, True])
def test_colours_and_lines_are_those_of_the_picture(explorer: Explorer, of: str, difference: bool) -> None:
    words = {"a1": "0.5:1.5:6", "n": "1e3:1e18:5:log"}
    found = sx.map("spike", "softmax,linear", words, of=of, difference=difference)
    flag = "&--difference=yes" if difference else ""
    heading, cells = asked(explorer, f"a1=0.5:1.5:6&n=1e3:1e18:5:log&--of={of}{flag}")
    for place in range(len(found.panels)):
        panel, drawn = heading["layers"][place], map_figure(found).panels[place]
        assert np.array_equal(cells[place, panel["coloured"]], drawn.coloured_numbers, equal_nan=True)
        assert panel["scale"] == vars(drawn.scale)
        assert panel["title"] == drawn.title
    assert {each["name"]: each["level"] for each in heading["levels"]} == quantity_levels(found)


def test_a_panel_of_one_colour_shows_its_margin_beside_its_probabilities(explorer: Explorer) -> None:
    heading, cells = asked(explorer, "a1=0.5:1.5:6&n=1e3:1e18:5:log")
    assert [each["coloured"] for each in heading["layers"]] == ["values", "margin"]
    assert float(cells[1, "values"].max()) < 1e-5
    assert heading["layers"][1]["scale"]["log"]
    assert heading["layers"][1]["scale"]["label"] == "margin"


def test_the_zeros_of_the_formula_are_where_it_says(explorer: Explorer) -> None:
    heading, cells = asked(explorer, "a1=0.5:1.5:6&n=1e3:1e18:5:log")
    formula = heading["layers"][0]["formula"]
    assert (formula["formula"], formula["tag"]) == ("a1(a1+b+c) = 1", "[ours]")
    a1 = np.linspace(0.5, 1.5, 6)
    wanted = np.broadcast_to(a1 * (a1 + 0.3) - 1, (5, 6))
    np.testing.assert_allclose(cells[0, "formula"], wanted, atol=1e-12)
    assert (1, "formula") not in cells


def test_a_map_without_a_closed_form_comes_after_its_progress(explorer: Explorer) -> None:
    path = "/api/v1/map/spike/window:size=8?n=600:1000:2&a1=0.5:1.5:2&--draws=80"
    lines = explorer.send(path, accept=f"{CELLS}, {LINES}").body.splitlines()
    heading, cells = unpacked(base64.b64decode(json.loads(lines[-1])["result"]))
    wanted = explorer.get(path.removeprefix("/api/v1"))["layers"][0]
    for name in ("values", "low", "high"):
        assert cells[0, name].tolist() == wanted[name]
    assert heading["layers"][0]["evidence"] == wanted["evidence"]
    assert explorer.send(path, accept=CELLS).headers["content-type"] == CELLS


def test_too_many_slow_cells_are_refused_with_how_many_may_be(explorer: Explorer) -> None:
    said = explorer.refusal("/map/spike/window:size=8?n=600:1000:60&a1=0.5:1.5:60&--draws=20")
    assert said["most_cells"] == 2500
    assert "2,500" in said["error"]
    assert explorer.refusal("/map/spike/softmax?a1=1:2:600&n=1e3:1e4:600:log")["most_cells"] == 250_000
    assert explorer.refusal("/map/spike/softmax?a1=1:2:6")["most_cells"] is None


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_what_can_be_dragged_can_be_mapped(explorer: Explorer, construction: str) -> None:
    rows = explorer.get(f"/controls/{construction}/softmax")
    schema = CONSTRUCTIONS[construction].schema
    assert [each["name"] for each in rows if each["of"] == "construction"] == list(schema.model_fields)
    reference = {name: str(value) for name, value in CONSTRUCTIONS[construction].example.items()}
    for each in rows:
        assert (each["span"] is None) == (each["kind"] == "word")
        if each["name"] in reference:
            assert each["value"] == reference[each["name"]]
        if each["span"] and each["of"] == "construction":
            low, high = each["span"]["low"], each["span"]["high"]
            read_counted(schema, each["name"], f"{low}:{high}:3{':log' * each['span']['log']}")


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_every_cell_of_the_first_map_is_a_point(explorer: Explorer, construction: str) -> None:
    kind = CONSTRUCTIONS[construction]
    across, up = explorer.get(f"/axes/{construction}")
    assert up["name"] == "n"
    spans = [read_counted(kind.schema, each["name"], each["range"]) for each in (across, up)]
    values, lengths = ([*span.points(count)] for span, count in spans)
    assert len(values) > 1
    assert len(lengths) > 1
    for value, n in product(values[::7], lengths[::7]):
        kind.read(admissible(kind, {**kind.example, across["name"]: value, "n": n}))


def test_a_mechanisms_own_parameter_is_there_where_all_have_it(explorer: Explorer) -> None:
    def own(mechanisms: str) -> dict[str, Any]:
        rows = explorer.get(f"/controls/spike/{mechanisms}")
        return {each["name"]: each for each in rows if each["of"] == "mechanism"}

    assert own("power")["beta"]["value"] == str(MECHANISMS["power"].example["beta"])
    assert own("softmax")["temperature"]["value"] == "1"
    assert own("softmax,power:beta=4") == {}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_has_its_controls(explorer: Explorer, mechanism: str) -> None:
    rows = explorer.get(f"/controls/spike/{mechanism}")
    assert {"n", "a1"} <= {each["name"] for each in rows}


def test_ramps_are_those_of_matplotlib() -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    ramps = read_ramps()
    assert set(ramps) == {SEQUENTIAL, DIVERGING}
    for name, colours in ramps.items():
        assert colours == [to_hex(colormaps[name](i)) for i in range(256)]


def test_controls_name_no_code(explorer: Explorer) -> None:
    assert "registered" in explorer.refusal("/controls/spike/os:system")["error"]
