"""The limits of a budget, how bytes are written, and which samples and points cells are about."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import pytest

import separatrix as sx
from separatrix.analysis.choose import Budget, choose, task_cells
from separatrix.analysis.choose.budget import format_bytes, read_memory
from separatrix.analysis.choose.choice import Choice
from separatrix.analysis.choose.construction_cells import BOTH, ChoiceCell, construction_cell, nearest_point
from separatrix.analysis.choose.task_cells import task_cell
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import mechanism_named
from separatrix.training.tasks import Split

choice_module = import_module("separatrix.analysis.choose.choice")
cells_module = import_module("separatrix.analysis.choose.construction_cells")


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("n", 2, 10**18), ("layers", 1, 1000), ("heads", 1, 1024), ("kv_heads", 1, 1024), ("width", 1, 1024)],
)
def test_sizes_have_limits(name: str, least: int, most: int) -> None:
    for value in (least, most):
        assert getattr(Budget.read({"n": 100, "heads": 1024, name: value}), name) == value
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
    task = task_cells.task_at("needle", 16)
    assert task is not None
    found = task_cell("needle", softmax, budget)
    assert found.best_score == task.ceiling(task.samples(400, Split.TEST)).score
    assert found.score is not None
    assert abs(found.best_score - found.score) < 0.05
    monkeypatch.setattr(task_cells, "witnessed_mechanisms", lambda task: ())
    unwritten = task_cell("needle", softmax, budget)
    assert (unwritten.score, unwritten.best_score) == (None, found.best_score)
    monkeypatch.undo()
    monkeypatch.setattr(task_cells, "FIRST_SAMPLES", (100, 200))
    monkeypatch.setattr(task_cells, "MAX_SCORED_TOKENS", 1)
    assert "on the same 100 samples" in task_cell("needle", softmax, budget).evidence


def cell(word: str, same: bool | None = None, n: int | None = 200, name: str = "spike") -> ChoiceCell:
    return ChoiceCell(name, word, "certified", n, "it is so", "separatrix", same_in_format=same)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "reason", "is_unknown"),
    [
        (cell("distinguishes"), None, False),
        (cell("distinguishes", True), None, False),
        (cell("can"), None, False),
        (cell("learned"), None, False),
        (cell("blind"), "blind with this reader on spike", False),
        (cell("blind", False), "blind with this reader on spike", False),
        (cell("blind", True), "blind, and the difference is lost in float16, on spike", False),
        (cell("saturated", True), "blind, and the difference is lost in float16, on spike", False),
        (cell("saturated"), "saturated (this reader fires on both D0 and D1) on spike", False),
        (cell("partial", True), "distinguishes only some of the time with this reader on spike", False),
        (cell("lost", True), "the difference is lost in float16 on spike", False),
        (cell("cannot"), "proved unable, in exact arithmetic, on spike", False),
        (cell("cannot", n=198), "proved unable, in exact arithmetic, on spike at n=198", False),
        (cell("cannot", n=None), "proved unable, in exact arithmetic, on spike", False),
        *((cell(word), None, True) for word in ("undecided", "not known", "not learned", "contradiction")),
    ],
)
def test_every_word_excludes_leaves_open_or_satisfies(given: ChoiceCell, reason: str | None, is_unknown: bool) -> None:
    budget, softmax = Budget.read({"n": 200, "dtype": "float16"}), mechanism_named("softmax")
    row = choice_module._build_row(softmax, budget, ("spike",), {"spike": given})
    assert row.excluded_by == (() if reason is None else (reason,))
    assert row.failed_on == (() if reason is None else ("spike",))
    assert row.not_known == (("spike",) if is_unknown else ())
    assert row.has_results is (given.word != "not known")
    assert row.status.value == ("excluded" if reason else "not known" if is_unknown else "fits")
    assert (row.operations_exponent is None) is (reason is not None)
    free = choice_module._build_row(softmax, budget, (), {"spike": given})
    assert (free.excluded_by, free.failed_on, free.not_known) == ((), (), ())


def test_mechanisms_are_ordered_by_status_then_failures_then_merits(found: Choice) -> None:
    good, bad = {"a": cell("can"), "b": cell("learned")}, {"a": cell("can"), "b": cell("blind")}
    template = replace(found.mechanisms[0], excluded_by=(), failed_on=(), not_known=(), kept_bytes=8, sees=good)
    excluded = replace(template, excluded_by=("x",), failed_on=("x",))
    ordered = [
        template,
        replace(template, kept_bytes=9),
        replace(template, sees=bad, kept_bytes=1),
        replace(template, not_known=("x",)),
        replace(template, not_known=("x", "y"), kept_bytes=1),
        replace(excluded, failed_on=()),
        replace(excluded, kept_bytes=1, sees=bad),
        excluded,
        replace(excluded, sees=bad),
        replace(excluded, kept_bytes=9),
        replace(excluded, not_known=("y",), kept_bytes=1),
        replace(excluded, failed_on=("x", "y"), kept_bytes=1),
    ]
    keys = [row.sort_key for row in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("n", "has_groups", "groups", "literal", "reason"),
    [
        (100, True, 64, False, ""),
        (101, True, 64, False, "ends at n=50"),
        (100, True, 65, False, "has 65 different tokens"),
        (100, True, 65, True, "has 65 different tokens"),
        (100, False, 0, False, "needs every token"),
        (100, False, 0, True, ""),
    ],
)
def test_constructions_are_skipped_that_say_nothing_about_a_length(
    n: int, has_groups: bool, groups: int, literal: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = SimpleNamespace(n=50, has_groups=has_groups, group_count=lambda: groups)
    monkeypatch.setattr(choice_module, "MAX_GROUPS", 64)
    monkeypatch.setattr(choice_module, "nearest_point", lambda name, length: point)
    assert choice_module._reason_to_skip("spike", n, literal) == reason
    monkeypatch.setattr(choice_module, "nearest_point", lambda name, length: None)
    assert choice_module._reason_to_skip("spike", n, literal) == "has no length near"


@pytest.mark.parametrize(
    ("interval", "rows_equal", "same", "word", "kind"),
    [
        ((1.0, 1.0), False, False, "distinguishes", "certified"),
        ((1.0, 1.0), False, True, "lost", "certified"),
        ((0.5, 0.5), False, True, "lost", "certified"),
        ((0.0, 0.0), False, True, "blind", "certified"),
        ((0.0, 0.0), False, None, "blind", "certified"),
        ((0.0, 0.0), True, True, "cannot", "proved"),
        ((1.0, 1.0), True, True, "contradiction", "contradiction"),
        ((0.0, 0.5), True, True, "undecided", "certified"),
    ],
)
def test_a_cell_claims_no_more_than_its_evidence(
    interval: tuple[float, float], rows_equal: bool, same: bool | None, word: str, kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    outcome = sx.verdict("spike", "softmax", n=200).outcome
    outcome = replace(outcome, p0=0.0, p1=0.0, only=0.0, fire_d1=0.0, distinguish=interval[0], interval=interval)
    outputs = SimpleNamespace(proves=True, has_equal_rows=rows_equal, evidence="fractions")
    stored = SimpleNamespace(same=same, same_probe=same)
    monkeypatch.setattr(cells_module, "solve_until_decided", lambda *_: outcome)
    monkeypatch.setattr(cells_module, "_compute_outputs", lambda *_: outputs)
    monkeypatch.setattr(cells_module, "store_in_format", lambda *_: stored)
    found = construction_cell("spike", mechanism_named("softmax"), Budget.read({"n": 200}))
    assert (found.word, found.kind) == (word, kind)
    assert found.interval == interval
    assert found.same_in_format is (None if word == "undecided" else same)
    assert found.displayed_word == (BOTH if word == "blind" and same else word)
    assert ("readers" in found.command) is (word in ("lost", "cannot", "contradiction"))
    if rows_equal and word == "cannot":
        outputs.proves = False
        assert construction_cell("spike", mechanism_named("softmax"), Budget.read({"n": 200})).word == "blind"
