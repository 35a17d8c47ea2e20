"""The map in a real browser: it follows a drag, is walked by keys, and says what the command says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from command_server import run
from explorer import Explorer

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.exhaustive

START = "/map/spike/softmax,linear?a1=0.5:1.5:101&n=1e3:1e18:101:log"
PROOF = "/api/v1/files/certificate/spike/softmax?n=1000000000&a1=0.99"
FRAMES = "performance.getEntriesByName('map-frame').map((each) => each.detail.cells)"


def settled(page: Any, cells: int = 101 * 101) -> None:
    """Wait until the last frame that was drawn has so many cells."""
    for _ in range(300):
        frames = page.evaluate(FRAMES)
        if frames and frames[-1] == cells:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"no map of {cells} cells, but {page.evaluate(FRAMES)}")


def test_a_drag_shows_coarse_maps_and_then_the_fine_one(page: Any) -> None:
    page.goto(START)
    settled(page)
    before = len(page.evaluate(FRAMES))
    box = page.get_by_label("b, slider").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.1, middle)
    page.mouse.down()
    for i in range(500):
        page.mouse.move(box["x"] + box["width"] * (0.1 + 0.02 * (i % 20)), middle)
        page.wait_for_timeout(20)
        during = page.evaluate(FRAMES)[before:]
        if len(during) > 5:
            break
    else:
        raise AssertionError(f"{len(during)} frames while the slider was dragged")
    assert set(during) == {64 * 64}
    assert page.url.endswith(START)  # the address waits until one lets go
    page.mouse.up()
    settled(page)
    assert re.search(r"&b=0\.\d+$", page.url)
    page.go_back()
    page.wait_for_url(f"**{START}")
    playwright.expect(page.get_by_label("b", exact=True)).to_have_value("0.2")


def test_the_map_itself_is_dragged_and_zoomed(page: Any) -> None:
    page.goto(START)
    settled(page)
    box = page.locator(".hands").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile(r"a1=0\.(59|6|60)\d*:1\.(59|6|60)\d*:101"))
    page.locator(".hands").first.focus()
    page.keyboard.press("+")
    page.wait_for_url(re.compile(r"a1=0\.[67]\d*:1\.[45]\d*:101"))


def test_keys_walk_the_cells_and_pin_what_the_command_says(page: Any, explorer: Explorer) -> None:
    page.goto(START)
    settled(page)
    page.locator(".hands").first.focus()
    for key in ("ArrowRight", "ArrowLeft", "Shift+ArrowDown", "Enter"):
        page.keyboard.press(key)
    table = page.locator(".pinned table")
    table.wait_for()
    assert page.url.endswith("#A=a1:0.99,n:1e9")
    words = ("spike", "softmax,linear", "a1=0.99", "n=1e9")
    found = json.loads(run("verdict", *words, "--json").stdout)
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in table.inner_text().split("\n") if "\t" in row}
    assert rows["Verdict"] == ["distinguishes", "blind"]
    assert [each["verdict"] for each in found] == ["distinguishes", "blind"]
    for title, name in (("P(tells apart)", "distinguish"), ("Margin", "margin"), ("Significant bits", "bits")):
        for shown, each in zip(rows[title], found, strict=True):
            plain = shown.replace("×10", "e").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
            assert float(plain) == pytest.approx(each[name], rel=1e-3, abs=0)
    bf16 = found[1]["lost_from"]["bf16"]
    assert f"bf16 loses it from n = {bf16}" in table.inner_text()
    page.locator(".every-n").nth(1).wait_for()
    assert page.locator(".every-n").first.inner_text().startswith("Distinguishes D0 from D1 for every n ≥ 1000000000")
    reading = page.locator(".pointed-at").inner_text()
    assert reading.startswith("a1 = 0.99, n = 10⁹")
    proof = page.get_by_role("link", name="Certificate").first.get_attribute("href")
    assert explorer.send(proof).body == explorer.send(PROOF).body


def test_a_link_is_the_view(page: Any) -> None:
    page.goto(f"{START}&--of=bits#A=a1:0.7,n:10000&B=a1:0.9,n:100000")
    settled(page)
    assert page.locator(".pinned h2").all_inner_texts()[0].startswith("A a1 = 0.7, n = 10000")
    assert page.get_by_label("Quantity").input_value() == "bits"
    names = page.locator(".panel").nth(1).locator(".line-names li").all_inner_texts()
    assert [each.split(",")[0] for each in names] == ["bfloat16", "float16", "float32", "float64"]


def test_what_is_wrong_stands_beside_its_field(page: Any) -> None:
    page.goto(START)
    settled(page)
    field = page.get_by_label("b", exact=True)
    field.fill("abc")
    field.press("Enter")
    page.locator("[aria-invalid]").wait_for()
    said = page.locator(f"#{field.get_attribute('aria-describedby')}").inner_text()
    assert said == "b=abc is not a number"
    assert field.get_attribute("aria-invalid") == "true"


def test_a_map_without_a_closed_form_begins_with_few_cells_and_can_be_cancelled(page: Any) -> None:
    page.goto("/map/spike/window:size=8?a1=0.5:1.5:60&n=600:1000:60&--draws=60")
    page.get_by_text("12 by 12 cells").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("you cancelled it").wait_for()
