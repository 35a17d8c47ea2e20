"""Mutation testing of the packages that draw conclusions: `make mutants`.

A seeded sample of small faults (a comparison, a number, a condition) is introduced into a copy of the
source, one at a time, by the operators of cosmic-ray. Each fault is killed if the tests of its own package
in `make test` fail. The tests that call the changed function run first. The survivors are printed as diffs; those
listed in `equivalent_mutants.toml` do not change behaviour and are not counted.

    make mutants                              # 12 faults in each package, seed 0
    make mutants ARGS="--seed 3 --count 5 checker"
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "exact/engines": "tests/exact/engines",
    "exact/outputs": "tests/exact/engines tests/exact/verdicts",
    "exact/verdicts": "tests/exact/verdicts",
    "exact/proofs": "tests/exact/proofs",
    "exact/weights": "tests/analysis/weights",
    "checker": "tests/checker",
    "analysis/maps": "tests/analysis/maps",
    "analysis/choose": "tests/analysis/choose",
    "analysis/costs": "tests/analysis/costs",
    "analysis/evidence": "tests/analysis/evidence",
    "training/tasks": "tests/training/tasks",
    "training/learning": "tests/training/learning",
    "sweeps/store": "tests/sweeps/store",
}
"""Source folders with the tests that have to notice a fault in them."""
# Most operators of cosmic-ray replace + by ^ or <= by `is not`, which any test notices.
# These are the subtle ones.
OPERATORS = [
    "core/NumberReplacer",
    "core/AddNot",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/ZeroIterationForLoop",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceContinueWithBreak",
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul")),
    *(
        f"core/ReplaceComparisonOperator_{pair}"
        for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_Gt", "Gt_Lt", "Eq_NotEq", "NotEq_Eq")
    ),
]
RUNNER = "tests/helpers/mutant_runner.py"
GUARDS_OFF = ("frozen=False", "strict=False")
"""Guards against later changes of the code, without which all results are the same."""
TIMEOUT_FACTOR = 10
"""A run of the tests that takes this many times as long as without a fault counts as killed."""


@dataclass(frozen=True)
class Mutant:
    """One fault: the occurrence of an operator's pattern in a file."""

    package: str
    file: Path
    operator: str
    occurrence: int

    def source(self) -> str:
        """Return the source of the file with the fault."""
        original = (ROOT / self.file).read_text(encoding="utf-8")
        return str(mutate_code(original, get_operator(self.operator)(), self.occurrence))

    def diff(self) -> list[str]:
        """Return the changed lines, first removed, then added."""
        original = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(original, self.source().splitlines(), lineterm="", n=0)
        return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]

    def line(self) -> int:
        """Return the number of the first line that changes."""
        original = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        changes = zip(original, self.source().splitlines(), strict=False)
        return next((number for number, (before, after) in enumerate(changes, 1) if before != after), 1)

    def place(self) -> str:
        """Return the file and the line."""
        return f"{self.file}:{self.line()}"

    def function(self) -> str:
        """Return the innermost function with the fault, as `mutant_runner.py` names it; empty at module level."""
        tree, line = ast.parse((ROOT / self.file).read_text(encoding="utf-8")), self.line()
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        starts = [
            min(node.lineno, *(decorator.lineno for decorator in node.decorator_list))
            if node.decorator_list
            else node.lineno
            for node in functions
            if node.lineno <= line <= (node.end_lineno or 0)
        ]
        return f"/{self.file.relative_to('src/separatrix')}:{max(starts, default=0)}"


def list_mutants(package: str) -> Iterator[Mutant]:
    """Yield every fault that the operators can introduce into a package."""
    for path in sorted((ROOT / "src/separatrix" / package).rglob("*.py")):
        nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
        for operator in OPERATORS:
            instance = get_operator(operator)()
            count = sum(1 for node in nodes for _ in instance.mutation_positions(node))
            for occurrence in range(count):
                yield Mutant(package, path.relative_to(ROOT), operator, occurrence)


class Runner:
    """A copy of the repository and a process that runs tests in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "repository"
        ignored = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache", "*.egg-info")
        shutil.copytree(ROOT, self.folder, ignore=ignored)
        command = [ROOT / ".venv/bin/python", self.folder / RUNNER, self.folder, folder / "log"]
        self.process = subprocess.Popen(
            [*map(str, command)],
            env={**os.environ, "PYTHONPATH": str(self.folder / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: object) -> dict[str, Any]:
        """Run tests as `mutant_runner.py` describes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def survives(self, mutant: Mutant, tests: list[str], reach: object, limit: float) -> bool:
        """Whether the tests pass with the fault."""
        target = self.folder / mutant.file
        target.write_text(mutant.source(), encoding="utf-8")
        answer = self.ask(tests=tests, reach=reach, function=mutant.function(), limit=limit)
        shutil.copy(ROOT / mutant.file, target)
        return bool(answer["code"] == 0)


def choose_mutants(package: str, seed: int, count: int, equivalents: set[tuple[str, str]]) -> list[Mutant]:
    """Draw faults that are not known to change nothing."""
    candidates = list(list_mutants(package))
    random.Random(f"{seed} {package}").shuffle(candidates)
    chosen: list[Mutant] = []
    for mutant in candidates:
        if len(chosen) == count:
            break
        diff = mutant.diff()
        if not diff:
            continue
        original, line = (end[1:].strip() for end in (diff[0], diff[-1]))
        is_guard = any(guard in line and guard not in original for guard in GUARDS_OFF)
        if not is_guard and not {(str(mutant.file), line), (str(mutant.file), original)} & equivalents:
            chosen.append(mutant)
    return chosen


def main() -> int:
    """Try a sample of mutants; the exit code is 0 if at least 90 % of those that matter are killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), help="folders below src/separatrix")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=12, help="faults in each package")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults that are tried at a time")
    options = parser.parse_args()
    known = tomllib.loads((ROOT / "tests/equivalent_mutants.toml").read_text(encoding="utf-8"))
    equivalents = {(entry["file"], entry.get("becomes") or entry["line"]) for entry in known["mutant"]}
    killed, survivors = 0, []
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(options.jobs) as pool:
        runners: SimpleQueue[Runner] = SimpleQueue()
        for number in range(options.jobs):
            runners.put(Runner(Path(temporary) / str(number)))
        for package in options.packages:
            tests = [*PACKAGES[package].split(), f"src/separatrix/{package}"]  # the latter are doctests
            runner, started = runners.get(), time.monotonic()
            baseline = runner.ask(tests=tests)
            runners.put(runner)
            if baseline["code"] != 0:
                raise SystemExit(f"{package}: its tests fail without any fault")
            limit = 60 + TIMEOUT_FACTOR * (time.monotonic() - started)

            def survives(
                mutant: Mutant, tests: list[str] = tests, reach: object = baseline["reach"], limit: float = limit
            ) -> bool:
                runner = runners.get()
                try:
                    return runner.survives(mutant, tests, reach, limit)
                finally:
                    runners.put(runner)

            mutants = choose_mutants(package, options.seed, options.count, equivalents)
            for mutant, is_alive in zip(mutants, pool.map(survives, mutants), strict=True):
                killed += not is_alive
                print("survives" if is_alive else "killed  ", mutant.place(), *mutant.diff(), sep="\n    ", flush=True)
                if is_alive:
                    survivors.append(mutant)
    total = killed + len(survivors)
    print(f"{killed} of {total} faults killed by the tests of their package ({killed / max(1, total):.0%})")
    for mutant in survivors:
        print(f"survives: {mutant.place()}", *mutant.diff(), sep="\n    ")
    return 0 if killed >= 0.9 * total else 1


if __name__ == "__main__":
    sys.exit(main())
