"""The comparison at equal state: which key widths are chosen, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from documents import require_document
from separatrix.analysis.evidence import runs
from separatrix.analysis.evidence.equal_state import match_state, state_size
from separatrix.analysis.evidence.protocol import learn
from separatrix.core.errors import UsageError
from separatrix.mechanisms import mechanism_named
from separatrix.pages.learned.page import page
from separatrix.training.tasks import task_named
from sweep_tools import Inline

TINY: dict[str, Any] = {
    "pairs": 4, "steps": 4, "every": 2, "width": 8, "key_width": 2, "batch": 4, "validation": 16, "tests": 16,
    "rates": "0.01",
}  # fmt: skip
MQAR = task_named("mqar").read({"pairs": 4})


@pytest.mark.parametrize("name", ["delta", "elu", "based", "softmax"])
@pytest.mark.parametrize("wanted", [300, 1000])
def test_the_width_is_that_of_the_nearest_state(name: str, wanted: int) -> None:
    setting = MQAR.default_setting(width=8, key_width=2)
    mechanism = mechanism_named(name)
    chosen = match_state(MQAR, mechanism, setting, wanted)
    sizes = {
        width: state_size(MQAR, mechanism, MQAR.default_setting(width=8, key_width=width)) for width in range(1, 33)
    }

    def off(width: int) -> float:
        return max(sizes[width] / wanted, wanted / sizes[width])

    assert off(chosen.keys) == min(map(off, sizes))
    assert chosen.as_json() | {"key_width": 0} == setting.as_json() | {"key_width": 0}


def test_rotary_places_need_even_widths_and_fixed_ones_stay() -> None:
    setting = MQAR.default_setting(width=8, key_width=2, rope=100)
    for wanted in (300, 400, 500, 600):
        assert match_state(MQAR, mechanism_named("delta"), setting, wanted).keys % 2 == 0


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "executor_for", lambda *_: Inline())
        url = f"sqlite:///{tmp_path_factory.mktemp('equal')}/runs.db"
        return learn("mqar", "softmax,delta,linformer", TINY, seeds=2, store=url, equal_state=True)


def test_both_comparisons_are_there_with_what_was_chosen(found: Any) -> None:
    printed = require_document("learned", found.as_json())
    equal = printed["equal_state"]
    by_width = {each["mechanism"]: each for each in printed["mechanisms"]}
    assert equal["reference"] == "softmax"
    assert equal["tokens"] == 12
    assert equal["state_bytes"] == by_width["softmax"]["state_bytes"]
    (delta,) = equal["mechanisms"]
    assert delta["mechanism"] == "delta"
    assert delta["key_width"] == int(delta["setting"]["key_width"]) > 2
    assert delta["state_ratio"] == pytest.approx(delta["state_bytes"] / equal["state_bytes"])
    assert abs(delta["state_ratio"] - 1) < 0.1 < 1 - by_width["delta"]["state_bytes"] / equal["state_bytes"]
    assert len(delta["trained"]["seeds"]) == 2
    assert delta["parameters"] > by_width["delta"]["parameters"]
    assert [(pair["a"], pair["b"]) for pair in equal["paired"]] == [("softmax", "delta")]
    assert equal["left_out"] == ["linformer"]
    assert found.states_differ


def test_the_page_shows_both(found: Any) -> None:
    shown = page("Recall", [found.as_part()], "separatrix learn")
    assert "At equal state" in shown
    assert "linformer carries no state from token to token" in shown


@pytest.mark.parametrize(
    ("mechanisms", "says"),
    [("linformer,delta", "linformer carries no state"), ("delta", "equal state needs two mechanisms")],
)
def test_there_must_be_a_state_to_compare_with(mechanisms: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        learn("mqar", mechanisms, TINY, equal_state=True)
