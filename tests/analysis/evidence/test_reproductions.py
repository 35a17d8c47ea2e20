"""Published numbers beside ours: the rule, what is computed exactly, and the ledger from runs of a store."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from command import invoke as separatrix
from documents import require_document
from separatrix.analysis.evidence import reproductions as ledger
from separatrix.analysis.evidence import runs
from separatrix.analysis.evidence.exact_statements import gradient_step_difference, householder_factors
from separatrix.analysis.evidence.experiments import read_command
from separatrix.analysis.evidence.published import (
    FIGURE_ACCURACY,
    PUBLISHED,
    RULE,
    Agreement,
    OurNumber,
    PublishedNumber,
    judge_agreement,
    read_printed,
)
from separatrix.analysis.evidence.reproductions import measure_published
from separatrix.cli.application import run as typed
from separatrix.core.errors import UsageError
from separatrix.mechanisms import mechanism_named
from separatrix.pages.learned.page import page
from separatrix.pages.learned.published import number_text, published_section, published_table
from separatrix.sweeps.store import results
from sweep_tools import Inline

TINY = {"steps": 4, "every": 2, "width": 8, "batch": 4, "validation": 16, "tests": 16}
WORDS = [f"{name}={value}" for name, value in TINY.items()]


EXACT: dict[str, Any] = {"compute": lambda: 0.0, "computes": "a computation", "rounding": 0.005}
DOCS = Path(__file__).parents[3] / "docs" / "reproductions.md"


def entry(value: float = 0.9, accuracy: float = 0.005, **more: Any) -> PublishedNumber:
    measured = {} if "compute" in more else {"learn": "mqar softmax"}
    return PublishedNumber("some", "a table", "it learns", value, accuracy, **measured, **more)


@pytest.mark.parametrize(
    ("published", "ours", "verdict"),
    [
        (entry(), OurNumber(0.89, (0.88, 0.90)), Agreement.AGREES),
        (entry(), OurNumber(0.89, (0.885, 0.895)), Agreement.AGREES),
        (entry(), OurNumber(0.89, (0.885, 0.8949)), Agreement.DIFFERS),
        (entry(), OurNumber(0.95, (0.9051, 0.99)), Agreement.DIFFERS),
        (entry(accuracy=0.0), OurNumber(0.89, (0.885, 0.8999)), Agreement.DIFFERS),
        (entry(accuracy=0.0, **EXACT), OurNumber(0.904, None), Agreement.AGREES),
        (entry(accuracy=0.0, **EXACT), OurNumber(0.91, None), Agreement.DIFFERS),
        (entry(other="other data"), OurNumber(0.89, (0.88, 0.90)), Agreement.OTHER),
        (entry(other="other data"), None, Agreement.NONE),
        (entry(), None, Agreement.NONE),
    ],
)
def test_the_verdict_follows_from_value_accuracy_and_interval(
    published: PublishedNumber, ours: OurNumber | None, verdict: Agreement
) -> None:
    found, why = judge_agreement(published, ours)
    assert found is verdict
    assert why


def test_every_entry_can_be_read_and_says_what_it_is() -> None:
    assert len({each.name for each in PUBLISHED}) == len(PUBLISHED)
    for each in PUBLISHED:
        assert each.source.startswith("arXiv")
        if each.learn:
            asked = read_command(each.learn)
            assert len(asked.mechanisms) == 1
            assert each.cpu_seconds
            assert each.length is None or each.length in asked.task.further_tasks()
        assert each.published is not None or each.not_measured


def test_no_entry_has_a_tolerance_of_our_own() -> None:
    """A published number may be off by half of its last printed digit, or as a figure is read: no more."""
    for each in PUBLISHED:
        if each.published is None:
            continue
        if "figure" in each.source and each.learn and each.learn.startswith("loc"):
            assert each.accuracy == FIGURE_ACCURACY
            continue
        digits = len(f"{each.accuracy:g}".partition(".")[2]) - 1 if each.accuracy else 0
        assert each.accuracy in (0, 0.5 * 10**-digits)
        assert each.accuracy == 0 or each.published == round(each.published, digits)


def documented() -> dict[str, tuple[str, str, str]]:
    """PublishedNumber, ours and the verdict, by entry, as the page of the documentation has them."""
    rows = [line.strip("| ").split(" | ") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): (row[2], row[3], row[4]) for row in rows}


@pytest.mark.parametrize("each", PUBLISHED, ids=lambda each: each.name)
def test_the_documented_verdict_is_the_rule_applied_to_the_documented_numbers(each: PublishedNumber) -> None:
    published, shown, verdict = documented()[each.name]
    assert published == number_text(each.published)
    numbers = [float(x) for x in re.findall(r"-?[\d.]+(?:e-\d+)?", shown)]
    ours = OurNumber(numbers[0], (numbers[1], numbers[2]) if numbers[1:] else None) if numbers else None
    assert judge_agreement(each, ours)[0].value == verdict
    if each.learn:
        assert ours is not None
        assert ours.interval is not None


def test_the_documented_counts_are_those_of_the_table() -> None:
    counts = Counter(verdict for _, _, verdict in documented().values())
    told = ", ".join(f"{counts[each.value]} {each.value}" for each in Agreement)
    assert f"{len(PUBLISHED)} published numbers: {told}." in " ".join(DOCS.read_text().split())


def test_the_documented_rule_is_the_one_that_is_applied() -> None:
    assert RULE in " ".join(DOCS.read_text().replace("> ", "").split())


def test_four_householder_factors_make_every_permutation_of_five_and_three_do_not() -> None:
    """By ranks of matrices, and by the reflections themselves, as deltaproduct reads them."""
    every = [np.eye(5)[list(each)] for each in permutations(range(5))]
    ranks = [int(np.linalg.matrix_rank(np.eye(5) - each)) for each in every]
    assert max(ranks) == householder_factors(5) == 4
    swaps = [(i, j) for i in range(5) for j in range(i)]
    unit = torch.eye(5, dtype=torch.float64)
    made = set[bytes]()
    for chosen in product([None, *swaps], repeat=4):
        reached = list(range(5))
        for pair in chosen:
            if pair is not None:
                reached[pair[0]], reached[pair[1]] = reached[pair[1]], reached[pair[0]]
        made.add(bytes(reached))
    assert len(made) == 120
    keys = torch.stack([unit[i] - unit[j] for i, j in ((0, 1), (1, 2), (2, 3), (3, 4))])[None, None, None]
    state = unit[None, None]
    mechanism: Any = mechanism_named("deltaproduct:factors=4")
    zeros = state.new_zeros(1, 1, 1, 5)
    (after,), _ = mechanism.advance(
        (state,), zeros, keys[..., 3, :], zeros, further_keys=keys[..., :3, :].flatten(-2),
        further_values=state.new_zeros(1, 1, 1, 15), beta=state.new_full((1, 1, 1, 4), 2.0),
    )  # fmt: skip
    assert any(torch.allclose(after[0, 0], torch.from_numpy(each), atol=1e-12) for each in every)
    assert round(float(torch.linalg.matrix_rank(unit - after[0, 0]))) == 4


def test_the_witness_is_a_gradient_step() -> None:
    assert gradient_step_difference(50) < 1e-5


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> Inline:
    """Runs in this process, and whoever computes them."""
    executor = Inline()
    monkeypatch.setattr(runs, "executor_for", lambda *_: executor)
    return executor


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/runs.db"


def test_one_experiment_serves_all_numbers_read_off_it_and_half_a_store_is_used(inline: Inline, url: str) -> None:
    given, said = {**TINY, "rates": "0.01", "also": "20,64"}, list[str]()
    (half,) = measure_published(["retrieval-64"], given, seeds=2, store=url).entries
    before = len(results(url, kind="training"))
    assert before == 2
    names = ["retrieval-64", "retrieval-16", "recall-rates"]
    found = measure_published(names, given, seeds=3, store=url, say=said.append)
    assert len(results(url, kind="training")) == before + 1
    assert [each.rpartition(": ")[2] for each in said] == ["3 runs"]
    assert [each.name for each in found.entries] == names
    rows = results(url, kind="training").sort("seed")
    assert found.entries[0].ours is not None
    assert found.entries[1].ours is not None
    assert half.ours is not None
    assert half.seeds == found.entries[0].seeds[:2]
    assert found.entries[0].seeds == tuple(rows["score_at_64"])
    assert found.entries[1].seeds == tuple(rows["score"])
    seeds = list(rows["score_at_64"])
    drawn = 1.959964 * np.sqrt(np.mean(seeds) * (1 - np.mean(seeds)) / 16)
    assert found.entries[0].interval == pytest.approx((min(seeds) - drawn, max(seeds) + drawn))
    assert found.entries[0].ours == np.median(seeds)
    assert found.entries[0].verdict is Agreement.OTHER
    assert found.entries[0].why == "asked with also=20,64"
    assert (found.entries[0].measured_by or "").startswith(
        "separatrix learn retrieval softmax trained=16 tested=16 also=20,64 rates=0.01 steps=4"
    )


def test_scores_above_chance_and_the_best_of_three(inline: Inline, url: str) -> None:
    given = {**TINY, "trained": 12, "tested": 14, "rates": "0.01"}
    found = measure_published(["parity-delta"], given, seeds=4, store=url)
    (ours,) = found.entries
    rows = results(url, kind="training", purpose="test").sort("seed")
    scaled = [2 * row["score"] - 1 for row in rows.iter_rows(named=True)]
    assert ours.seeds == pytest.approx(scaled)
    ordered = sorted(scaled)
    assert found.entries[0].verdict is Agreement.OTHER
    share = np.mean([row["score"] for row in rows.iter_rows(named=True)])
    drawn = 2 * 1.959964 * np.sqrt(share * (1 - share) / (16 * 2))  # 16 samples, 2 bits of each are asked
    assert ours.interval == pytest.approx((ordered[2] - drawn, ordered[3] + drawn))
    assert ours.ours == pytest.approx((ordered[2] + 3 * ordered[3]) / 4)


def test_an_entry_whose_runs_fail_is_not_computed_and_the_others_are(
    inline: Inline, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = PublishedNumber("broken", "arXiv 0", "x", 1.0, 0.1, learn="needle training_plan:broken n=8")
    few = PublishedNumber("few", "arXiv 0", "x", 1.0, 0.1, learn="mqar elu pairs=2 keys=2 values=2")
    exact = next(each for each in PUBLISHED if each.compute)
    monkeypatch.setattr(ledger, "published_named", lambda _: (broken, few, exact))
    monkeypatch.setattr("separatrix.training.tasks._base.MAX_DRAWS", 0)
    found = measure_published([], {**TINY, "rates": "0.01"}, seeds=2, store=url)
    assert [each.verdict for each in found.entries] == [Agreement.NONE, Agreement.NONE, Agreement.AGREES]
    assert "fails in backward" in found.entries[0].why
    assert "has too few different inputs" in found.entries[1].why
    assert found.as_json()["counts"]["not computed"] == 2


def test_the_page_has_each_entry_with_its_command(inline: Inline, url: str) -> None:
    found = measure_published(["s5-factors", "gradient-step", "recall-rates"], store=url)
    shown = page("Published", (), "separatrix learn --published", [published_section(found)])
    assert "separatrix learn --published s5-factors" in shown
    assert "agrees if the published value lies in our interval" in shown
    assert "2 agrees, 1 not computed." in " ".join(shown.split())
    text = published_table(found)
    assert "| `s5-factors` |" in text
    assert text.endswith("\n3 published numbers: 2 agrees, 1 not computed.\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["parity-sofmax"], "there is no published number parity-sofmax (did you mean parity-softmax?)"),
        (["parity-softmax", "step=3"], "parity has no parameter step (did you mean steps?)"),
        (["parity-softmax", "pairs=3"], "parity has no parameter pairs"),
        (["parity-softmax", "seeds=3"], "write `seeds` 3"),
        (["parity-softmax", "also=8"], "also=8 must be lengths from trained=40"),
        (["parity-softmax", "also=a,64"], "also=a,64 must be lengths"),
        (["retrieval-256", "also=64"], "retrieval-256 is read off the length 256; have it in also="),
        (["--seeds", "1"], "seeds=1 must be from 2"),
        (["--equal-state"], "`equal_state` takes a task and mechanisms"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(words: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        typed(["learn", "--published", *words, "--store", f"sqlite:///{tmp_path}/none.db"])
    assert says in str(told.value)
    assert "\n" not in str(told.value)
    assert not list(tmp_path.iterdir())


def test_the_command_prints_a_table_of_80_columns_and_json(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["s5-factors,gradient-step", "recall-rates"]
    asked = ["learn", "--published", *names, "--store", url]
    said = separatrix(*asked, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert all(len(line) <= 80 for line in said.stdout.splitlines())
    assert "s5-factors" in said.stdout
    typed([*asked, "--json"])
    printed = require_document("published", capsys.readouterr().out)
    assert [each["verdict"] for each in printed["entries"]] == ["agrees"] * 2 + ["not computed"]
    assert printed["rule"]


def test_published_numbers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    typed(["list", "published", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [each.name for each in PUBLISHED]
    assert rows[0]["measured_by"] == "separatrix learn parity softmax trained=40 tested=256 rates=0.003,0.01"


NEARLY = "it is 0.12 from ours, and may itself be off by 0.125"


@pytest.mark.parametrize(
    ("published", "ours", "verdict", "why"),
    [
        (entry(0.5, 0.0), OurNumber(0.5, (0.5, 0.75)), "agrees", "it lies in our interval"),
        (entry(0.5, 0.0), OurNumber(0.5, (0.25, 0.5)), "agrees", "it lies in our interval"),
        (entry(0.5, 0.0), OurNumber(0.5), "agrees", "it lies in our interval"),
        (entry(0.5, 0.125), OurNumber(0.7, (0.625, 0.75)), "agrees", NEARLY),
        (entry(0.5, 0.125), OurNumber(0.3, (0.25, 0.375)), "agrees", NEARLY),
        (entry(0.5, 0.125), OurNumber(0.7, (0.6251, 0.75)), "differs", "it is 0.13 from our interval"),
        (entry(0.5, 0.0, differs="more data"), OurNumber(0.7), "differs", "it is 0.2 from our interval; more data"),
        (entry(0.0, 0.0, **EXACT), OurNumber(0.0), "agrees", "it is the same"),
        (entry(0.0, 0.0, **EXACT), OurNumber(0.005), "agrees", "it is the same but for rounding"),
        (entry(0.0, 0.25, **EXACT), OurNumber(0.255), "agrees", "it is the same but for rounding"),
        (entry(0.0, 0.0, **EXACT), OurNumber(0.0051), "differs", "it is 0.0051 from ours"),
        (entry(0.5, other="other data"), OurNumber(0.5), "other setting", "other data"),
        (entry(0.5, not_measured="too large"), None, "not computed", "too large"),
        (entry(0.5), None, "not computed", "every run failed"),
    ],
)  # fmt: skip
def test_the_rule_at_its_limits(published: PublishedNumber, ours: OurNumber | None, verdict: str, why: str) -> None:
    found, reason = judge_agreement(published, ours)
    assert (found.value, reason) == (verdict, why)


def test_changed_parameters_make_the_question_another_one() -> None:
    found, why = judge_agreement(entry(0.5, other="other data"), OurNumber(0.5), "asked with n=8")
    assert (found, why) == (Agreement.OTHER, "asked with n=8; other data")


@pytest.mark.parametrize(
    ("digits", "value", "error"),
    [("3", 3, 0.5), ("0.5", 0.5, 0.05), ("0.02", 0.02, 0.005), ("97%", 0.97, 0.005), ("98.65%", 0.9865, 0.00005)],
)
def test_a_printed_number_is_off_by_half_of_its_last_digit(digits: str, value: float, error: float) -> None:
    assert read_printed(digits) == pytest.approx((value, error), rel=1e-15)
