"""The page as people use it, in a real browser: clicks, drags, keys, a server that goes and comes back."""

from __future__ import annotations

import json
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from command_server import run
from explorer import Explorer, running

pytestmark = pytest.mark.exhaustive  # `make test` keeps a first visit, in test_see_page.py
MAP = "/map/spike/softmax,linear?a1=0.5:1.5:60&n=1e3:1e9:60:log"
VIEWS = {
    "see": "/verdict/plain/softmax,linear",
    "map": MAP,
    "mechanisms": "/atlas?--family=score%20kernel",
    "card": "/assess/power:beta=4",
    "trained": "/learn",
    "store": "/results",
}
SHOWN = {
    "see": ".see:not(.behind) .sentence",
    "map": ".panel .hands",
    "mechanisms": "table.atlas td.cell:not(.unknown)",
    "card": "table.standings td.verdict",
    "trained": "ul.tasks .card",
    "store": "text=separatrix explore --store",
}
"""What is there once a view has its answer."""
FULL_VIEWS = {
    **VIEWS,
    "see": "/verdict/spike/softmax,linear,power:beta=4?n=1e18&m=300",
    "map": f"{MAP}#A=a1:0.7,n:10000",
}
"""Views with all that they can show."""
FRAMES = "performance.getEntriesByName('map-frame')"


def drawn(page: Any) -> None:
    """Wait for the map; not by a function of the page, which its policy does not let be made of text."""
    page.locator(".panel .hands").first.wait_for()
    while not page.evaluate(f"{FRAMES}.length"):
        page.wait_for_timeout(50)


def test_an_engineer_finds_where_it_goes_blind(page: Any, explorer: Explorer, tmp_path: Path) -> None:
    page.goto("/")
    page.get_by_role("link", name="Map", exact=True).click()
    drawn(page)
    page.goto(MAP)
    drawn(page)
    page.evaluate("performance.clearMeasures()")
    slider = page.locator(".map-view input[type=range]").first
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(500):
        page.mouse.move(box["x"] + box["width"] * (20 + step % 60) / 100, box["y"] + box["height"] / 2)
        page.wait_for_timeout(20)
        if page.evaluate(f"{FRAMES}.length") >= 3:
            break
    else:
        raise AssertionError("the map does not follow the drag")
    page.mouse.up()
    page.wait_for_url(re.compile(r"[?&]d=\d+"))
    page.goto(MAP)
    drawn(page)
    hands = page.locator(".hands").first
    hands.click(position={"x": 300, "y": 100})
    pinned = page.locator(".pinned", has_text="P(tells apart)")
    pinned.wait_for()
    place = dict(each.split(":") for each in page.url.partition("#A=")[2].split(","))
    wanted = explorer.get(f"/verdict/spike/softmax,linear?a1={place['a1']}&n={place['n']}")
    words = pinned.locator("tr", has_text="Verdict").locator("td").all_inner_texts()
    assert words == [each["verdict"] for each in wanted]
    with page.expect_download() as downloading:
        pinned.get_by_role("link", name="Certificate").first.click()
    proof = tmp_path / "proof.json"
    downloading.value.save_as(proof)
    assert run("check", str(proof)).returncode == 0
    page.go_back()
    page.wait_for_url(re.compile("[^#]*$"))


def test_the_map_needs_no_mouse_and_says_its_numbers(page: Any, explorer: Explorer) -> None:
    page.goto(MAP)
    drawn(page)
    page.locator(".hands").first.focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    said = page.locator(".pointed-at strong").inner_text()
    numbers = page.locator(".pointed-at .number-of b").all_inner_texts()
    assert "a1" in said
    assert len(numbers) == 2
    page.keyboard.press("Enter")
    page.locator(".pinned table").wait_for()
    place = dict(each.split(":") for each in page.url.partition("#A=")[2].split(","))
    wanted = explorer.get(f"/verdict/spike/softmax,linear?a1={place['a1']}&n={place['n']}")
    shown = page.locator(".pinned tr", has_text="P(tells apart)").locator("td").all_inner_texts()
    assert shown == [each.partition(",")[0] for each in numbers]
    assert [float(re.sub("×10(.*)", _power, each)) for each in shown] == pytest.approx(
        [each["distinguish"] for each in wanted], rel=1e-5, abs=1e-300
    )


def _power(found: re.Match[str]) -> str:
    return "e" + found[1].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))


def test_a_designer_finds_the_own_mechanism_first(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\ndef attend(q, k, v, causal=False):\n"
        "    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)\n"
    )
    with running("--mechanism", "mine.py:attend", cwd=tmp_path) as found:
        page = browser.new_page(base_url=found.address)
        page.set_default_timeout(90_000)
        page.goto("/")
        page.get_by_role("link", name="Mechanisms").click()
        page.get_by_role("link", name="mine.py:attend").first.click()
        page.get_by_role("heading", level=1, name=re.compile("mine.py:attend")).wait_for()
        page.get_by_text(re.compile(r"divides its logits by sqrt\(width\)")).first.wait_for()
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_and_every_view_fits_a_phone(
    browser: Any, explorer: Explorer, view: str, scheme: Any
) -> None:
    for width in (1280, 800, 390) if view == "see" else (1280, 390):
        size = {"width": width, "height": 800}
        with browser.new_context(base_url=explorer.address, viewport=size, color_scheme=scheme) as context:
            page = context.new_page()
            page.goto(FULL_VIEWS[view])
            page.get_by_role("heading", level=1).wait_for()
            page.locator(SHOWN[view]).first.wait_for(timeout=120_000)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            found = Axe().run(page).response["violations"]
            assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_link_is_the_view_and_the_command(page: Any, explorer: Explorer, view: str) -> None:
    page.goto(VIEWS[view])
    page.get_by_role("heading", level=1).wait_for()
    page.locator(SHOWN[view]).first.wait_for(timeout=120_000)
    assert page.url == explorer.address + VIEWS[view]
    command = page.locator(".foot .command").inner_text()
    assert command.startswith(f"separatrix {VIEWS[view].strip('/').partition('/')[0].partition('?')[0]}")
    if view in ("see", "map"):
        words = command.split()[1:]
        assert run(*words, "--json").returncode == 0


def test_the_page_recovers_when_the_server_is_back(browser: Any, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    page = browser.new_page()
    page.set_default_timeout(60_000)
    with running("--port", port, cwd=tmp_path) as first:
        page.goto(f"{first.address}/")
        page.locator(".chance .word").first.wait_for()
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
    page.get_by_role("button", name="New random reader").click()
    page.locator(".gone").wait_for()
    with running("--port", port, cwd=tmp_path):
        page.locator(".gone").wait_for(state="detached")
        page.get_by_text("seed 1").first.wait_for()
    page.close()


def test_nothing_is_fetched_from_elsewhere(page: Any, explorer: Explorer) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in VIEWS.values():
        page.goto(path)
        page.get_by_role("heading", level=1).wait_for()
    assert asked
    assert [each for each in asked if not each.startswith((explorer.address, "data:", "blob:"))] == []


def test_copied_is_what_is_shown(browser: Any, explorer: Explorer) -> None:
    rights = ["clipboard-read", "clipboard-write"]
    with browser.new_context(base_url=explorer.address, permissions=rights) as context:
        page = context.new_page()
        page.goto(MAP)
        page.get_by_role("button", name="Copy command").first.click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator(".foot .command").inner_text()
        assert json.loads(run(*copied.split()[1:], "--json").stdout)["quantity"] == "distinguish"
