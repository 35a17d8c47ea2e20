"""The table of benchmarks: what fails is reported with its reason, and the others are still measured."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import __main__ as program
from benchmarks._base import Failure, Measurement, at_least, at_most, ratio, require
from benchmarks._suites import run_suite

SUITES = {
    "sound": """
        yield at_most("fast enough", 1.0, "s", 2.0)
        yield at_least("large enough", 3.0, "x", 2.0)
    """,
    "too_slow": 'yield at_most("too slow", 3.0, "s", 2.0)',
    "raising": """
        yield at_most("first line", 1.0, "s", 2.0)
        raise MemoryError("no room for [8.5] GB")
        yield at_most("never reached", 1.0, "s", 2.0)
    """,
    "raising_in_a_line": """
        yield at_most("broken line", lambda: 1 / 0, "s", 2.0)
        yield at_least("wrong line", lambda: require(False, "its output") or 1.0, "x", 2.0)
        yield at_most("next line", lambda: 1.0, "s", 2.0)
    """,
    "without_a_program": 'yield Skipped("needs a program", "coqc is not installed")',
    "dying": """
        yield at_most("last words", 1.0, "s", 2.0)
        os.kill(os.getpid(), signal.SIGKILL)
    """,
    "leaving": "yield sys.exit(3)",
    "not_importable": "yield from no.such.name",
}


@pytest.fixture
def suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of small suites, importable here and in child processes."""
    head = "import os, signal, sys\nfrom benchmarks._base import Skipped, at_least, at_most, require\n\ndef measure():"
    for name, body in SUITES.items():
        (tmp_path / f"suite_{name}.py").write_text(f"{head}\n    {body.strip()}\n".replace("\n        ", "\n    "))
    (tmp_path / "suite_not_importable.py").write_text("import a_package_that_is_not_installed\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def table_of(*names: str) -> tuple[bool, str]:
    """Whether all promises are kept, and everything printed."""
    console = Console(file=io.StringIO(), width=200)
    kept = program.run([f"suite_{name}" for name in names], console)
    assert isinstance(console.file, io.StringIO)
    return kept, console.file.getvalue()


@pytest.mark.usefixtures("suites")
def test_a_suite_that_raises_is_reported_and_the_others_are_measured() -> None:
    kept, printed = table_of("raising", "sound")
    assert not kept
    assert "first line" in printed
    assert "the remaining lines of suite_raising" in printed
    assert "failed: MemoryError: no room for [8.5] GB" in printed
    assert "fast enough" in printed
    assert "large enough" in printed


@pytest.mark.usefixtures("suites")
def test_a_suite_whose_process_is_killed_is_reported_and_the_others_are_measured() -> None:
    kept, printed = table_of("dying", "sound")
    assert not kept
    assert "last words" in printed
    assert "its process was ended by SIGKILL; the system kills a process that takes too much memory" in printed
    assert "large enough" in printed


@pytest.mark.usefixtures("suites")
def test_a_line_that_fails_is_reported_with_its_promise_and_the_next_is_measured() -> None:
    broken, wrong, fine = run_suite("suite_raising_in_a_line")
    assert isinstance(broken, Measurement)
    assert isinstance(wrong, Measurement)
    assert (broken.title, broken.failure, broken.met) == ("broken line", "ZeroDivisionError: division by zero", False)
    assert (wrong.failure, wrong.met) == ("not timed, because it is wrong: its output", False)
    assert fine == at_most("next line", 1.0, "s", 2.0)
    kept, printed = table_of("raising_in_a_line")
    assert not kept
    assert "failed: ZeroDivisionError: division by zero" in printed
    assert "≤ 2 s" in printed


@pytest.mark.usefixtures("suites")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("leaving", "its process ended with exit code 3"),
        ("not_importable", "ModuleNotFoundError: No module named 'a_package_that_is_not_installed'"),
    ],
)
def test_every_other_end_of_a_suite_has_its_reason(name: str, reason: str) -> None:
    (line,) = run_suite(f"suite_{name}")
    assert line == Failure(f"the remaining lines of suite_{name}", reason)


@pytest.mark.usefixtures("suites")
def test_the_table_is_fine_only_if_every_promise_is_kept() -> None:
    assert table_of("sound")[0]
    assert not table_of("sound", "too_slow")[0]


@pytest.mark.usefixtures("suites")
def test_a_line_that_needs_a_missing_program_is_no_failure() -> None:
    kept, printed = table_of("without_a_program", "sound")
    assert kept
    assert "needs a program: skipped: coqc is not installed" in printed


def test_exit_codes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["no_such_suite"]) == 2
    assert "there is no suite no_such_suite" in capsys.readouterr().out
    for fine, code in ((True, 0), (False, 1)):
        monkeypatch.setattr(program, "run", lambda modules, console, fine=fine: fine)
        assert program.main(["maps"]) == code


def test_every_suite_is_in_the_table() -> None:
    folder = Path(program.__file__).parent
    assert {path.stem for path in folder.glob("[a-z]*.py")} == set(program.SUITES)


def test_a_failed_measurement_keeps_no_promise() -> None:
    assert not at_most("a", lambda: float("nan"), "s", 2.0).met
    assert not at_least("a", lambda: float("nan"), "s", 2.0).met
    require(True, "nothing")


def test_a_ratio_is_the_median_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only the functions move, with one run in ten disturbed."""
    now, calls = 0.0, 0

    def spend(amount: float) -> None:
        nonlocal now, calls
        calls += 1
        now += amount * (50 if calls % 10 == 0 else 1)

    monkeypatch.setattr("benchmarks._base.time.perf_counter", lambda: now)
    assert ratio(lambda: spend(3.0), lambda: spend(2.0), repeats=21) == pytest.approx(1.5)
