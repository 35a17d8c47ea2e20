"""The rules by which evidence becomes a conclusion, and that everything that concludes agrees on them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import separatrix as sx
from separatrix.analysis.cards.construction_result import (
    AtlasCell,
    ConstructionResult,
    RescuedBy,
    compute_result,
    find_rescue,
)
from separatrix.analysis.choose import Budget
from separatrix.analysis.choose import task_cells as choose_tasks
from separatrix.analysis.choose.construction_cells import construction_cell
from separatrix.analysis.choose.task_cells import task_at, task_cell
from separatrix.analysis.evidence.conclusions import TrainingWord
from separatrix.analysis.evidence.protocol import Experiment, StoredRuns, build_evidence, compute_bounds
from separatrix.analysis.laws.margins import is_literal
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.judgement import (
    Conclusion,
    Evidence,
    EvidenceKind,
    EvidenceQuestion,
    Goal,
    ProofMargin,
    ReaderClass,
    conclude,
    conclude_readers,
    error_margin,
    highest_share,
    is_nearest_length,
    lowest_expected_share,
    share_margin,
)
from separatrix.core.tensors import one_thread
from separatrix.mechanisms import mechanism_named
from separatrix.training.learning.witnesses import WITNESSES, witnessed_mechanisms
from separatrix.training.tasks import ProvedCeiling, Split, task_named

GOAL = Goal(ceiling=0.98, tolerance=0.005)
ASKED = EvidenceQuestion("needle", 64, "softmax", {"dz": "4"}, {"depth": "1"}, "bfloat16")
OTHERS = [
    replace(ASKED, name="spike"),
    replace(ASKED, n=4096),
    replace(ASKED, n=None),
    replace(ASKED, mechanism="linear"),
    replace(ASKED, parameters={"dz": "5"}),
    replace(ASKED, models={"depth": "2"}),
    replace(ASKED, dtype="float32"),
]


@pytest.mark.parametrize("other", OTHERS)
def test_evidence_for_another_question_never_counts(other):
    for evidence in (
        Evidence(EvidenceKind.WITNESS, 0.98, other),
        Evidence(EvidenceKind.TRAINED, 0.98, other, solved=True),
    ):
        found = conclude(ASKED, GOAL, [evidence])
        assert found.conclusion is Conclusion.UNKNOWN
        assert found.set_aside == (evidence,)
    proof = conclude(ASKED, GOAL, [Evidence(EvidenceKind.PROOF, 0.5, other)]).conclusion
    same_but_format = replace(other, dtype=ASKED.dtype) == ASKED  # a proof is about exact arithmetic
    assert proof is (Conclusion.CANNOT if same_but_format else Conclusion.UNKNOWN)


@pytest.mark.parametrize(
    ("evidence", "conclusion"),
    [
        ([], Conclusion.UNKNOWN),
        ([(EvidenceKind.WITNESS, 0.975)], Conclusion.CAN),
        ([(EvidenceKind.WITNESS, 0.974)], Conclusion.UNKNOWN),
        ([(EvidenceKind.TRAINED, 0.98)], Conclusion.UNKNOWN),  # lucky on the test samples: it solved nothing
        ([(EvidenceKind.FLOOR, 0.98)], Conclusion.UNKNOWN),
        ([(EvidenceKind.WITNESS, math.nan)], Conclusion.UNKNOWN),
        ([(EvidenceKind.PROOF, 0.7)], Conclusion.CANNOT),
        ([(EvidenceKind.PROOF, 0.976)], Conclusion.UNKNOWN),
        ([(EvidenceKind.PROOF, math.nan)], Conclusion.UNKNOWN),
        ([(EvidenceKind.PROOF, -math.inf), (EvidenceKind.WITNESS, 0.98)], Conclusion.CAN),
        ([(EvidenceKind.PROOF, 0.7), (EvidenceKind.WITNESS, 0.69)], Conclusion.CANNOT),
        ([(EvidenceKind.PROOF, 0.7), (EvidenceKind.WITNESS, 0.71)], Conclusion.CONTRADICTION),
        ([(EvidenceKind.PROOF, 0.5), (EvidenceKind.FLOOR, 0.6)], Conclusion.CONTRADICTION),
        ([(EvidenceKind.PROOF, 0.5), (EvidenceKind.TRAINED, 0.6)], Conclusion.CONTRADICTION),
    ],
)
def test_the_rules(evidence, conclusion):
    found = conclude(ASKED, GOAL, [Evidence(kind, score, ASKED) for kind, score in evidence])
    assert found.conclusion is conclusion
    assert ("bug in separatrix" in found.complaint) == (conclusion is Conclusion.CONTRADICTION)


def test_lower_is_better_where_scores_are_errors():
    goal = Goal(ceiling=0.2, tolerance=0.01, sign=-1)
    for proved, written, conclusion in (
        (0.5, None, Conclusion.CANNOT),
        (0.205, None, Conclusion.UNKNOWN),
        (0.5, 0.6, Conclusion.CANNOT),
        (0.5, 0.4, Conclusion.CONTRADICTION),
        (None, 0.21, Conclusion.CAN),
    ):
        evidence = [Evidence(EvidenceKind.PROOF, proved, ASKED)] if proved else []
        evidence += [Evidence(EvidenceKind.WITNESS, written, ASKED)] if written else []
        assert conclude(ASKED, goal, evidence).conclusion is conclusion


def test_chance_in_the_samples_neither_excludes_nor_contradicts():
    within = ProofMargin(least_gap=0.004, slack=0.03)
    proof = Evidence(EvidenceKind.PROOF, 0.9, ASKED, margin=within)
    assert conclude(ASKED, GOAL, [proof]).conclusion is Conclusion.UNKNOWN
    lucky = [proof, Evidence(EvidenceKind.TRAINED, 0.925, ASKED)]
    assert conclude(ASKED, GOAL, lucky).conclusion is Conclusion.UNKNOWN
    beyond = [proof, Evidence(EvidenceKind.TRAINED, 0.935, ASKED)]
    assert conclude(ASKED, GOAL, beyond).conclusion is Conclusion.CONTRADICTION


@pytest.mark.parametrize(("p", "count"), [(0.98, 200), (0.5, 2000), (0.999, 50), (0.7, 10_000)])
def test_bounds_on_shares_hold_beyond_what_chance_does(p, count):
    from scipy.stats import binom

    low, high = lowest_expected_share(p, count), highest_share(p, count)
    assert low < p < high <= 1
    assert binom.sf(math.ceil(p * count) - 1, count, low) <= 1e-6  # as many as p, at the least expectation
    assert high == 1 or binom.sf(math.floor(high * count), count, p) <= 1e-6
    assert p - low < 8 * math.sqrt(p * (1 - p) / count) + 16 / count


def test_the_margin_of_errors_covers_the_expected_gap():
    """Of 400 samples of 300 none may claim more than there is, and chance must not be a contradiction."""
    task = task_named("location").read({"n": 2, "shift": 0})
    proved = task.proved_ceiling(mechanism_named("identity-features:normalised=no"), task.default_setting())
    assert proved.score == 0.5
    chance = np.random.default_rng(5)
    for _ in range(400):
        samples = task.draw(300, Split.TEST, chance)
        margin = task.proof_margin(proved, samples)
        assert margin.least_gap <= 1e-12  # the class contains the best rule
        assert task.ceiling(samples).score >= proved.score - margin.slack
    clear = task_named("location").read({"n": 3, "shift": 2})
    samples = clear.samples(3000, Split.TEST)
    margin = error_margin(*clear.best_predictions(samples), samples.targets, 6 / 17)
    assert 0.02 < margin.least_gap < 6 / 17 - clear.ceiling(samples).score + 0.03
    assert error_margin(np.ones(1), np.ones(1), np.ones(1), 0.5) == ProofMargin(-math.inf, math.inf)


@pytest.mark.parametrize("tests", [2, 5, 10, 43, 200])
@pytest.mark.parametrize(("n", "shift"), [(4, 6), (2, 1), (5, 0)])
def test_lucky_small_samples_are_no_contradiction(n, shift, tests):
    """The best rule of the class scores far above its expectation on some of many small samples."""
    task = task_named("location").read({"n": n, "shift": shift})
    proved = task.proved_ceiling(mechanism_named("identity-features:normalised=no"), task.default_setting())
    samples = task.draw(2000 * tests, Split.TEST, np.random.default_rng(5))
    best, limit = (answers.reshape(2000, tests) for answers in task.best_predictions(samples))
    for best_rule, rule, targets in zip(best, limit, samples.targets.reshape(2000, tests), strict=True):
        margin = error_margin(best_rule, rule, targets, proved.score)
        score = np.square(rule - targets).sum() / np.square(targets).sum()
        assert proved.score - score <= margin.slack
        assert margin.least_gap <= 0.2  # the true gaps are 0.1, 0.08 and 0


def test_a_score_far_beyond_the_margin_of_errors_is_a_contradiction():
    task = task_named("location").read({"n": 3, "shift": 2})
    samples = task.samples(10_000, Split.TEST)
    margin = error_margin(*task.best_predictions(samples), samples.targets, 6 / 17)
    question, goal = EvidenceQuestion("location", 3), Goal(task.ceiling(samples).score, 0.01, sign=-1)
    proof = Evidence(EvidenceKind.PROOF, 6 / 17, question, margin=margin)
    assert conclude(question, goal, [proof]).conclusion is Conclusion.CANNOT
    impossible = Evidence(EvidenceKind.WITNESS, 6 / 17 - 0.1, question)
    assert conclude(question, goal, [proof, impossible]).conclusion is Conclusion.CONTRADICTION


def test_an_exact_ceiling_needs_no_samples():
    assert share_margin(1.0, 0.5, 2, exact=True).least_gap == 0.5
    assert share_margin(1.0, 0.5, 2, exact=False).least_gap < 0


@pytest.mark.parametrize(
    ("used", "asked", "step", "holds"),
    [(64, 64, 1, True), (64, 65, 1, False), (131_100, 131_072, 100, True), (4096, 131_072, 1, False)],
)
def test_a_length_answers_for_another_only_if_it_is_the_nearest_multiple(used, asked, step, holds):
    assert is_nearest_length(used, asked, step) is holds
    assert not is_nearest_length(100, 60, 100)  # the nearest multiple, but far away


def test_readers_that_tell_apart_what_is_proved_equal_are_a_contradiction():
    assert set(conclude_readers("blind", rows_equal=True).values()) == {Conclusion.CANNOT}
    for word, verified in (("distinguishes", False), ("blind", True)):
        found = conclude_readers(word, rows_equal=True, linear_verified=verified)
        assert set(found.values()) == {Conclusion.CONTRADICTION}
    found = sx.readers("injectivity", "linear")
    assert found.verdict.word.value == "cannot"
    seen = replace(found, fixed=sx.verdict("injectivity", "softmax"))
    assert seen.verdict.word.value == "contradiction"
    assert "bug in separatrix" in seen.verdict.evidence


# learn, without training


def judged_by_learn(task, mechanism, tests):
    """What `learn` says of a mechanism before anything is trained."""
    asked = Experiment(task, (mechanism,), task.default_setting(tests=tests))
    pilots = {Fraction(1, 100): None}
    return build_evidence(asked, mechanism, compute_bounds(asked), StoredRuns(pilots, {}, []), lambda _: ())


def test_a_class_that_contains_the_best_rule_is_never_said_to_be_unable():
    linear = mechanism_named("identity-features:normalised=no")
    for tests in (100, 500, 2000):
        found = judged_by_learn(task_named("location").read({"n": 2, "shift": 0}), linear, tests)
        assert found.word not in (TrainingWord.CANNOT, TrainingWord.CONTRADICTION)
    far = judged_by_learn(task_named("location").read({"n": 3, "shift": 2}), linear, 4000)
    assert far.word is TrainingWord.CANNOT


def test_nothing_trained_is_not_learned():
    found = judged_by_learn(task_named("parity").read(), mechanism_named("softmax"), 100)
    assert found.word is TrainingWord.UNKNOWN


def test_a_proved_ceiling_below_a_score_of_its_class_is_reported_as_a_bug(monkeypatch):
    """As when the ceiling of spike underflowed to 0.5 at n=2048."""
    spike, linear = task_named("spike"), mechanism_named("causal-linear")
    monkeypatch.setattr(spike, "proved_ceiling", lambda *_: ProvedCeiling(0.5, "linear kernels", "a wrong proof"))
    found = judged_by_learn(spike.read({"n": 16}), linear, 1000)
    assert found.word is TrainingWord.CONTRADICTION
    assert "This is a bug in separatrix; please report it" in found.sentence
    assert "cannot" not in found.sentence
    cell = task_cell("spike", linear, Budget.read({"n": 16, "dtype": "float32"}))
    assert cell.word == "contradiction"
    assert "bug in separatrix" in cell.evidence


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_not_proved(score):
    with pytest.raises(ValueError, match="must be a finite number"):
        ProvedCeiling(score, "all", "none")


# 200 random questions, asked everywhere

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2, 3))]
CLOSED = ("softmax", "linear", "elu", "relu", "power:beta=4", "identity-features:normalised=no", "hardmax")
LITERAL = ("delta", "gla", "causal-linear", "window:size=8")


def construction_cases(seed, count):
    chance = np.random.default_rng((11, seed))
    names = [name for name in CONSTRUCTIONS if name != "rough"]
    for _ in range(count):
        literal = chance.random() < 0.25
        mechanism = mechanism_named(str(chance.choice(LITERAL if literal else CLOSED)))
        n = int(math.exp(chance.uniform(math.log(4), math.log(24 if literal else 250))))
        yield str(chance.choice(names)), mechanism, n


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_choose_cards_and_atlas_never_contradict_each_other(seed):
    compared = 0
    with one_thread():
        for place, (name, mechanism, n) in enumerate(construction_cases(seed, 30)):
            where = f"{name} {mechanism.spelled} n={n}"
            cell = construction_cell(name, mechanism, Budget.read({"n": n, "dtype": "float64"}), literal=True)
            assert cell.word != "contradiction", where
            shown = cell.elsewhere or cell
            if shown.word == "not known":
                continue
            compared += 1
            asked = sx.readers(name, mechanism.spelled, n=shown.n)
            concluded = asked.conclusions
            assert Conclusion.CONTRADICTION not in concluded.values(), where
            words = {statement.word.value for statement in asked.statements}
            cannot = concluded[ReaderClass.EVERY] is Conclusion.CANNOT
            assert (shown.word == "cannot") == cannot == (words == {"cannot"}), where
            sampled = shown.kind == "sampled"  # readers may draw too few times to decide
            expected = {"distinguishes": Conclusion.CAN, "blind": Conclusion.CANNOT}.get(shown.word)
            if expected is not None:
                allowed = {expected, Conclusion.UNKNOWN} if sampled else {expected}
                assert concluded[ReaderClass.FIXED] in allowed, where
            if shown.word not in ("cannot", "lost") and not sampled:
                assert shown.word == asked.fixed.word, where
            rescued = find_rescue(asked.fixed)
            if rescued is not None:
                assert (rescued.by is RescuedBy.NO_READER) == cannot, where
            if rescued is not None and rescued.by is RescuedBy.LINEAR:
                assert concluded[ReaderClass.LINEAR] is Conclusion.CAN, where
            point = asked.fixed.construction
            if place % 12 == 0 and not (sampled or is_literal(point, mechanism)):
                result = compute_result(name, point, mechanism)
                assert isinstance(result, ConstructionResult), where
                cell_word = AtlasCell.from_result(mechanism, result).verdict
                assert result.word == asked.fixed.word == cell_word, where
    assert compared >= 20


SLOW = ("kda", "mesanet", "log-linear", "based", "gated-delta")


def task_cases(seed, count):
    chance = np.random.default_rng((12, seed))
    names = [name for name in WITNESSES if "n" in task_named(name).schema.model_fields]
    for _ in range(count):
        name = str(chance.choice([*names, "mqar", "copy"]))
        spelled = [*(each for each in witnessed_mechanisms(task_named(name)) if each not in SLOW), *CLOSED, *LITERAL]
        mechanism = mechanism_named(str(chance.choice(spelled)))
        yield name, mechanism, int(chance.integers(4, 24)) if name in names else 48


@pytest.mark.parametrize("seed", SEEDS)
def test_choose_and_learn_never_contradict_each_other(monkeypatch, seed):
    monkeypatch.setattr(choose_tasks, "MAX_SCORED_TOKENS", 1)
    monkeypatch.setattr(choose_tasks, "FIRST_SAMPLES", (300,))  # so that both score 300 samples
    same = {"can": TrainingWord.NOT_LEARNED, "cannot": TrainingWord.CANNOT, "not known": TrainingWord.UNKNOWN}
    found = set()
    with one_thread():
        for name, mechanism, n in task_cases(seed, 20):
            cell = task_cell(name, mechanism, Budget.read({"n": n, "dtype": "float32"}))
            task = task_at(name, n)
            if task is None:
                assert cell.word == "not known"
                continue
            learned = judged_by_learn(task, mechanism, 300)
            assert learned.word is same[cell.word], f"{name} {mechanism.spelled} n={n}: {cell.evidence}"
            found.add(cell.word)
    assert found >= {"can", "not known"}


def test_the_mechanisms_of_a_choice_are_judged_by_the_same_cells():
    budget = Budget.read({"n": 200, "dtype": "bfloat16"})
    found = sx.choose(200, "bf16", must="spikes,critical", mechanisms="softmax,linear")
    for row in found.mechanisms:
        for name in ("spikes", "critical"):
            assert row.sees[name] == construction_cell(name, mechanism_named(row.mechanism), budget)
