"""The limits of a budget, how bytes are written, and which samples and points cells are about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from separatrix.analysis.choose import Budget, choose, task_cells
from separatrix.analysis.choose.budget import format_bytes, read_memory
from separatrix.analysis.choose.choice import Choice
from separatrix.analysis.choose.construction_cells import nearest_point
from separatrix.analysis.choose.task_cells import task_cell
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import mechanism_named


@pytest.mark.parametrize(
    ("name", "least", "most"), [("n", 2, 10**18), ("layers", 1, 1000), ("heads", 1, 1024), ("width", 1, 1024)]
)
def test_sizes_have_limits(name: str, least: int, most: int) -> None:
    for value in (least, most):
        assert getattr(Budget.read({"n": 100, name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(UsageError, match=name):
            Budget.read({"n": 100, name: value})


@pytest.mark.parametrize(("heads", "kv_heads", "is_possible"), [(12, 4, True), (12, 12, True), (12, 5, False)])
def test_equally_many_heads_share_keys_and_values(heads: int, kv_heads: int, is_possible: bool) -> None:
    if is_possible:
        assert Budget.read({"n": 100, "heads": heads, "kv_heads": kv_heads}).kv_heads == kv_heads
        return
    with pytest.raises(UsageError, match="kv_heads=5 does not divide heads=12"):
        Budget.read({"n": 100, "heads": heads, "kv_heads": kv_heads})


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (2**19, "512 KiB"),
        (2**20 - 1, "1 MiB"),
        (2**20, "1 MiB"),
        (1000 * 2**20, "1000 MiB"),
        (2**30 - 2**20, "1023 MiB"),
        (2**50, "1 PiB"),
        (2**60, "1 EiB"),
        (5 * 2**70, "5120 EiB"),
    ],
)
def test_bytes_are_written_in_the_largest_unit_that_they_fill(size: int, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("given", "size"), [(1, 1), (2**60, 2**60), ("1 B", 1), ("1TiB", 2**40), ("1 TB", 10**12), ("0.5KiB", 512)]
)
def test_memory_is_1_byte_to_2_to_the_60(given: object, size: int) -> None:
    assert read_memory(given) == size
    for beyond in (0, 2**60 + 1, "0.9 B"):
        with pytest.raises(UsageError, match="is out of range; it must be 1 B to 2\\^60 B"):
            read_memory(beyond)


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_a_reference_point_is_the_first_variant_at_another_length(name: str) -> None:
    kind, point = CONSTRUCTIONS[name], nearest_point(name, 200)
    assert point is not None
    first = kind.read({**kind.example, **kind.variants[0]}).parameters.as_json()
    assert {**point.parameters.as_json(), "n": None} == {**first, "n": None}


@pytest.fixture(scope="module")
def found() -> Choice:
    return choose(200, must="spikes", mechanisms="softmax,linear,elu")


def test_the_nearest_mechanism_is_named_with_what_it_fails_and_what_is_unknown(found: Choice) -> None:
    (first, *_) = found.mechanisms
    failing = replace(first, excluded_by=("it cannot see parity",), failed_on=("parity",), not_known=())
    sentence = replace(found, mechanisms=(failing,)).nearest
    assert sentence == f"No mechanism is known to fit; the nearest is {first.mechanism} (it cannot see parity)."
    unknown = replace(failing, failed_on=(), not_known=("recall", "rough"))
    sentence = replace(found, mechanisms=(unknown,)).nearest
    assert sentence.endswith(f"the nearest is {first.mechanism} (it cannot see parity; unknown: recall, rough).")
    large = replace(failing, failed_on=(), kept_bytes=2048)
    assert "keeps the least, 2 KiB" in replace(found, mechanisms=(large,)).nearest
    assert replace(found, mechanisms=()).nearest == "No mechanism is known to fit."


def test_remedies_are_those_of_the_unknown_cells(found: Choice) -> None:
    """Tasks are trained, constructions computed literally; those without a length near n cannot be helped."""
    assert found.describe_remedy(["spikes"]) == " (--literal computes it)"
    assert found.describe_remedy(["needle"]) == " (separatrix learn needle trains it)"
    both = " (--literal computes it, separatrix learn needle trains it)"
    assert found.describe_remedy(["spikes", "needle"]) == both
    (elsewhere, *_) = found.elsewhere
    assert found.describe_remedy([elsewhere]) == ""
    assert replace(found, literal=True).describe_remedy(["spikes"]) == ""
    assert found.describe_remedy([]) == ""


def test_weights_are_scored_on_few_samples_only_if_these_rule_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Good weights are scored on all samples that fit; bad ones on the first few."""
    monkeypatch.setattr(task_cells, "FIRST_SAMPLES", (100, 200))
    softmax, budget = mechanism_named("softmax"), Budget.read({"n": 16, "dtype": "float32"})
    monkeypatch.setattr(task_cells, "MAX_SCORED_TOKENS", 400 * task_cells.task_at("needle", 16).max_tokens)  # type: ignore[union-attr]
    assert "on the same 400 samples" in task_cell("needle", softmax, budget).evidence
    with monkeypatch.context() as bad:
        bad.setattr(task_cells, "score_model", lambda model, task, samples: 0.0)
        assert "on the same 100 samples" in task_cell("needle", softmax, budget).evidence
    monkeypatch.setattr(task_cells, "MAX_SCORED_TOKENS", 1)
    assert "on the same 100 samples" in task_cell("needle", softmax, budget).evidence
