"""The first screen in a real browser: it says something at once, follows a drag, and needs no mouse."""

from __future__ import annotations

import re
from typing import Any

import pytest

from explorer import Explorer

DRAG = """async () => {
  const slider = document.querySelector(".see-n input[type=range]");
  let pictures = 0, last = "";
  const watch = new MutationObserver(() => {
    const now = document.querySelector(".mechanisms").textContent;
    if (now !== last) { last = now; pictures += 1; }
  });
  watch.observe(document.querySelector(".see"), { subtree: true, childList: true, characterData: true });
  const drag = (value) => {
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    return new Promise((done) => setTimeout(done, 16));
  };
  for (let step = 0; pictures < 5 && step < 2000; step += 1) await drag(3 + (step % 150) * 0.1);
  const during = pictures;
  await drag(17.9);
  slider.dispatchEvent(new Event("change", { bubbles: true }));
  return during;
}"""
"""A drag of n, an event a frame, until there were five pictures, and then to the end: how many there were."""


def sentences(page: Any) -> list[str]:
    page.locator(".see:not(.behind) .sentence").first.wait_for()
    found: list[str] = page.locator(".sentence").all_inner_texts()
    return found


def test_it_says_what_the_api_says(page: Any, explorer: Explorer) -> None:
    page.goto("/")
    shown = sentences(page)
    found = explorer.get("/see/spike/softmax,linear")
    assert [each.lower() for each in shown] == [
        each["sentence"].partition(": ")[2].lower() for each in found["mechanisms"]
    ]
    assert page.locator(".chance .p").all_inner_texts() == [
        f"P(tells apart) {each['chance']['said'].removeprefix('P ')}" for each in found["mechanisms"]
    ]
    assert page.locator(".chance .word").all_inner_texts() == ["distinguishes", "blind"]
    fired = [each["fires"][label].count(True) for each in found["mechanisms"] for label in (0, 1)]
    assert page.locator(".strip-count").all_inner_texts() == [f"{count} of 12 fire" for count in fired]
    assert page.locator("circle.fires").count() == sum(fired)
    assert page.locator("circle").count() == 4 * 12
    assert page.locator("td.changed").count() == 2


def test_it_says_what_is_proved_for_every_n(page: Any, explorer: Explorer) -> None:
    page.goto("/verdict/spike/softmax,elu?a1=0.8")
    proof = page.locator(".mechanism", has_text="softmax").locator(".every-n")
    proof.wait_for()
    found = explorer.get("/prove/spike/softmax?a1=0.8")
    sentences_of_proof = [found["statement"].removeprefix("softmax d"), found["final_statement"]]
    expected = [f"{each}.".replace(">=", "≥").replace("<=", "≤") for each in sentences_of_proof]
    shown = proof.locator("p").all_inner_texts()
    assert [shown[0].removeprefix("D"), shown[1]] == expected
    assert "for every n ≥ 1000 (d=102, m=12)" in shown[0]
    assert "d, m and all amplitudes are fixed" in shown[2]
    with page.expect_download() as download:
        proof.get_by_role("link", name="Download the proof").click()
    assert download.value.suggested_filename == "proof-spike-softmax.json"
    assert page.locator(".every-n").count() == 1  # no proof is known for elu


@pytest.mark.exhaustive
def test_the_picture_follows_a_drag_and_the_address_its_end(page: Any) -> None:
    page.goto("/")
    before = sentences(page)[1]
    during = page.evaluate(DRAG)
    page.wait_for_url("**/verdict/spike/softmax,linear?n=7.94e17")
    after = sentences(page)[1]
    assert during >= 5
    assert "every number format sees it" in before
    assert "not even float64 can see it" in after
    page.go_back()
    page.wait_for_url(re.compile(r"/$"))
    assert sentences(page)[1] == before


def test_keys_and_fields_will_do(page: Any) -> None:
    page.goto("/")
    sentences(page)
    field = page.get_by_label("n, number of tokens")
    field.fill("1e9")
    field.press("Enter")
    page.wait_for_url("**?n=1e9")
    assert "27th bit" in sentences(page)[1]
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**?n=1.12e9")
    assert page.evaluate("document.activeElement.type") == "range"
    page.get_by_role("button", name="New random reader").press("Enter")
    page.wait_for_url("**--seed=1")
    sentences(page)
    assert "seed 1" in page.locator(".between").inner_text()
    page.get_by_role("radio", name=re.compile("^2")).check()
    assert page.locator(".weights .amount").nth(1).inner_text() != ">0.999"


@pytest.mark.exhaustive
def test_what_is_wrong_stands_beside_its_field(page: Any) -> None:
    page.goto("/verdict/spike/softmax,linear?a0=3")
    told = page.locator(".dial:has(input[aria-invalid]) .problem")
    assert "a0=3 must be smaller than a1=1.2" in told.inner_text()
    page.get_by_label("a0", exact=True).fill("0.5")
    page.get_by_label("a0", exact=True).press("Enter")
    assert len(sentences(page)) == 2
    assert page.locator(".problem").count() == 0


@pytest.mark.exhaustive
def test_mechanisms_and_constructions_are_chosen(page: Any) -> None:
    page.goto("/verdict/averaging/softmax")
    sentences(page)
    page.get_by_label("Add a mechanism").select_option("retention")
    page.wait_for_url("**/verdict/averaging/softmax,retention")
    assert len(sentences(page)) == 2
    page.get_by_role("button", name="Estimate it by sampling").click()
    page.locator(".mechanism", has_text="retention").locator(".word").wait_for()
    page.get_by_label("Construction").select_option("duplication")
    page.wait_for_url("**/verdict/duplication/softmax,retention")
    page.get_by_role("heading", name="Counts of tokens differ", level=1).wait_for()
    page.get_by_role("button", name="Remove retention").click()
    page.wait_for_url("**/verdict/duplication/softmax")
    page.locator(".mechanism", has_text="retention").wait_for(state="detached")
    assert "no reader tells them apart" in sentences(page)[0]
