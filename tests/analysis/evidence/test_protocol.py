"""The protocol from beginning to end, on models so small that it takes seconds."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from command import invoke as separatrix
from documents import require_document, require_result
from separatrix.analysis.evidence.experiments import QUESTIONS, ReportQuestion, read_command, run_report
from separatrix.analysis.evidence.protocol import FIRST_PILOT_SEED, learn, read_experiment
from separatrix.analysis.evidence.runs import Stopped
from separatrix.analysis.evidence.training_result import ReportPart
from separatrix.cli.application import run as typed
from separatrix.cli.learn import run_progress
from separatrix.core.errors import UsageError
from separatrix.pages.learned.page import page, predictions_section
from separatrix.sweeps.store import results

TINY = {"n": 8, "steps": 20, "every": 10, "width": 8, "batch": 8, "validation": 64, "tests": 200}
WORDS = [f"{name}={value}" for name, value in TINY.items()]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('evidence')}/runs.db"


@pytest.fixture(scope="module")
def found(store: str) -> Any:
    return learn("needle", "softmax,elu", TINY, seeds=3, store=store, workers=2, rates="0.001,0.01")


def test_all_that_is_asked_for_is_there(found: Any) -> None:
    printed = require_document("learned", found.as_json())
    assert set(printed) >= {"task", "parameters", "ceiling", "floor", "mechanisms", "paired"}
    for each in printed["mechanisms"]:
        assert set(each) >= {
            *("mechanism", "witness", "proved_ceiling", "trained", "solved", "lr", "lr_window"),
            *("state_bytes", "parameters", "steps_to_solve", "sentence", "word"),
        }
        seeds = each["trained"]["seeds"]
        assert each["trained"]["interval"] is None  # three seeds have no 95 % interval
        assert min(seeds) <= each["trained"]["median"] == sorted(seeds)[1] <= max(seeds)
        assert len(each["trained"]["seeds"]) == each["solved"]["of"] == 3
        assert each["lr"] in each["lr_window"]
        assert each["parameters"] > 0
        assert each["state_bytes"] > 0
    (pair,) = printed["paired"]
    assert (pair["a"], pair["b"]) == ("softmax", "elu")
    assert 2 / 2**3 <= pair["p_value"] == pair["p_adjusted"] <= 1
    assert pair["separated"] is False


def test_pilots_never_see_the_test_samples_and_seeds_that_count_chose_nothing(found: Any, store: str) -> None:
    rows = results(store, kind="training").to_dicts()
    pilots = [row for row in rows if row["purpose"] == "pilot"]
    assert len(pilots) == 4
    assert all(row["score"] is None and row["seed"] >= FIRST_PILOT_SEED for row in pilots)
    tested = [row for row in rows if row["purpose"] == "test" and row["start"] == "scratch"]
    assert sorted(row["seed"] for row in tested) == [1, 1, 2, 2, 3, 3]
    assert all(row["score"] is not None for row in tested)
    by_rate = {(row["mechanism"], float(row["rate"])): row["validation_score"] for row in pilots}
    for each in found.mechanisms:
        assert {float(rate): score for rate, score in each.pilots.items()} == {
            rate: score for (name, rate), score in by_rate.items() if name == each.mechanism
        }


def test_the_same_again_is_read_from_the_store_and_more_seeds_add_only_theirs(found: Any, store: str) -> None:
    before = len(results(store, kind="training"))
    again = learn("needle", "softmax,elu", TINY, seeds=3, store=store, workers=1, rates="0.001,0.01")
    assert again.as_json() == found.as_json()
    assert len(results(store, kind="training")) == before
    more = learn("needle", "softmax,elu", TINY, seeds=4, store=store, workers=1, rates="0.001,0.01")
    assert len(results(store, kind="training")) == before + 2
    assert [run.score for run in more["elu"].runs[:3]] == [run.score for run in found["elu"].runs]


def test_a_run_that_diverges_counts(tmp_path: Path) -> None:
    wild = learn(
        "regression", "softmax", seeds=2, store=f"sqlite:///{tmp_path}/d.db", workers=1,
        rates="1e9", steps=30, every=10, warmup=0, clip="1e30", width=8, batch=8, validation=32, tests=64,
    )  # fmt: skip
    (each,) = wild.mechanisms
    assert len(each.runs) == 2
    assert all(math.isfinite(run.score) for run in each.runs)
    assert each.as_json()["diverged"] == 2
    assert each.solved.count == 0


def test_a_mechanism_that_fails_at_every_rate_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    setting = {**TINY, "rates": "0.001,0.01"}
    found = learn("needle", "training_plan:broken,softmax", setting, seeds=2, store=f"sqlite:///{tmp_path}/r.db")
    broken, sound = (each.as_json() for each in found.mechanisms)
    assert (broken["lr_window"], broken["trained"]["seeds"]) == ([], [])
    assert "every run failed" in broken["sentence"]
    assert all("fails in backward" in each for each in broken["failed"])
    assert len(sound["trained"]["seeds"]) == 2


def test_exit_code_is_one_if_every_run_failed(tmp_path: Path) -> None:
    store = f"--store=sqlite:///{tmp_path}/r.db"
    done = separatrix("learn", "needle", "training_plan:broken", *WORDS, "rates=0.01", "--seeds=2", store)
    assert done.returncode == 1, done.stderr
    assert "every run failed" in done.stdout


def test_it_is_a_line_a_table_a_picture_and_a_file(found: Any, tmp_path: Path) -> None:
    require_result(found, tmp_path)
    frame = found.to_frame()
    assert frame["mechanism"].to_list() == ["softmax", "elu"]
    assert frame["mean"].to_list() == [each.trained.mean for each in found.mechanisms]
    axes = found.plot()
    assert [each.get_text().replace("\n", "") for each in axes.get_yticklabels()] == ["softmax", "elu"]


def test_the_command_prints_the_sentence_and_json(found: Any, store: str) -> None:
    asked = ["learn", "needle", "softmax,elu", *WORDS, "rates=0.001,0.01", "--seeds", "3", "--store", store]
    said = separatrix(*asked)
    assert said.returncode == 0, said.stderr
    assert "ceiling" in said.stdout
    assert " ".join(found["elu"].sentence.split()[:3]) in " ".join(said.stdout.split())
    assert require_document("learned", separatrix(*asked, "--json").stdout)["task"] == "needle"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["neddle", "softmax"], "there is no task neddle (did you mean needle?)"),
        (["needle", "sofmax"], "there is no mechanism sofmax (did you mean softmax?)"),
        (["needle", "softmax", "step=3"], "needle has no parameter step (did you mean steps?)"),
        (["needle", "softmax", "n=7"], "n=7 must be an even number"),
        (["needle", "softmax,softmax"], "a mechanism is named twice"),
        (["needle", "softmax", "--seeds", "1"], "seeds=1 must be from 2"),
        (["needle", "softmax", "seeds=3"], "write `seeds` 3"),
        (["mqar", "softmax", "pairs=33"], "pairs=33 is more than keys=32"),
        (["needle"], "name the mechanisms after the task"),
        (["needle", "n=64"], "name the mechanisms after the task"),
        (["needle", "softmax", "rates=0"], "rates=0 must be comma-separated numbers above 0"),
    ],
)
def test_bad_input_is_one_line(words: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        typed(["learn", *words, "--store", f"sqlite:///{tmp_path}/none.db"])
    assert says in str(told.value)
    assert "\n" not in str(told.value)
    assert not list(tmp_path.iterdir())


def test_names_are_read_as_words() -> None:
    asked = read_experiment("mqar", ["softmax"], {"pairs": "8", "key_width": 8})
    assert asked.task.parameters.pairs == 8
    assert asked.setting.key_width == 8
    with pytest.raises(UsageError, match="name a mechanism"):
        read_experiment("mqar", "", {})


def test_the_page_is_written_and_stands_alone(found: Any, store: str, tmp_path: Path) -> None:
    asked = ["needle", "softmax,elu", *WORDS, "rates=0.001,0.01", "--seeds", "3", "--store", store]
    typed(["learn", *asked, "--out", str(tmp_path / "page.html")])
    text = (tmp_path / "page.html").read_text()
    assert found["elu"].sentence.split(":")[0] in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    with pytest.raises(UsageError, match="nowhere"):
        typed(["learn", *asked, "--out", str(tmp_path / "nowhere" / "page.html")])


def test_the_default_report_asks_eight_questions_that_can_be_read() -> None:
    assert [each.name for each in QUESTIONS] == [
        *("needle", "recall", "witness", "spike", "duplication", "regression", "convolution", "rates")
    ]
    for question in QUESTIONS:
        for words in question.experiments:
            assert len(read_command(words).setting.grid) > 1


def test_experiments_are_told_apart_by_what_they_differ_in(found: Any, store: str) -> None:
    changed = " ".join(f"{name}={value}" for name, value in TINY.items() if name != "n")
    assert set(found.label.split()) == {"needle", "n=8", *changed.split()}
    other = replace(found, setting=found.setting.model_copy(update={"conv": 3}))
    assert ReportPart("", "", "", (found, other)).labels == (found.label, "conv=3")
    assert ReportPart("", "", "", (found,)).labels == (found.label,)


def test_a_small_report_has_every_figure_and_holds_predictions_against_training(store: str) -> None:
    some = f"needle softmax,elu {' '.join(WORDS)} rates=0.001,0.01"
    recall = "mqar softmax pairs=2 keys=4 values=4 steps=4 every=2 width=16 batch=4 tests=16 rates=0.1"
    questions = (
        ReportQuestion("one", "One", "?", (some, some.replace("n=8", "n=16")), "n"),
        ReportQuestion("two", "Two", "?", tuple(f"{recall} key_width={width}" for width in (4, 8)), tuned=2),
        ReportQuestion("three", "Three", "?", (some,), is_about_rates=True),
    )
    found = run_report(store, seeds=3, questions=questions, workers=1)
    assert [each.name for each in found.parts] == ["one", "two", "three"]
    assert found.parts[2].results[0].as_json() == found.parts[0].results[0].as_json()
    named = {each.name: each for each in found.predictions}
    assert set(named) == {"constructions", "state"}
    asked = [(pair.task, pair.mechanism) for pair in named["constructions"].pairs]
    assert len(asked) == len(set(asked)), "what two questions ask counts once"
    (tuned,) = found.parts[1].results[0].mechanisms
    assert len(tuned.tuned_seeds) == 2
    printed = page("What was learned", found.parts, "separatrix learn", predictions_section(found.predictions))
    assert "rank correlation" in printed
    assert printed.count("<img") == printed.count("data:image/png") == 1 + 2 + 4 * 3 + 2
    for said in ("softmax − elu", "2 runs from the witness", "as good as the best", "[0.00, 0.71]"):
        assert said in printed, said


def test_what_the_user_stops_ends_as_a_sweep_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, run_progress(quiet=True):
        raise Stopped("stopped after 3 of 6 runs; the same command goes on from there")
    assert ended.value.exit_code == 130
    assert "separatrix: stopped after 3 of 6 runs" in capsys.readouterr().err
