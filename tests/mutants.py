"""Mutation testing of the packages that draw conclusions: `make mutants`.

A seeded sample of small faults (a comparison, a number, a condition) is introduced into a copy of the
source, one at a time, by the operators of cosmic-ray. Each fault is killed if the tests of its own package
fail. The survivors are printed as diffs; those listed in `equivalent_mutants.toml` do not change behaviour
and are not counted.

    make mutants                              # 12 faults in each package, seed 0
    make mutants ARGS="--seed 3 --count 5 checker"
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "exact/engines": "tests/exact/engines",
    "exact/outputs": "tests/exact/engines tests/exact/verdicts",
    "exact/verdicts": "tests/exact/verdicts",
    "checker": "tests/checker",
    "analysis/maps": "tests/analysis/maps",
    "analysis/choose": "tests/analysis/choose",
    "analysis/costs": "tests/analysis/costs",
    "analysis/evidence": "tests/analysis/evidence",
    "training/tasks": "tests/training/tasks",
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
TIMEOUT_FACTOR = 5
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


def list_mutants(package: str) -> Iterator[Mutant]:
    """Yield every fault that the operators can introduce into a package."""
    for path in sorted((ROOT / "src/separatrix" / package).rglob("*.py")):
        nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
        for operator in OPERATORS:
            instance = get_operator(operator)()
            count = sum(1 for node in nodes for _ in instance.mutation_positions(node))
            for occurrence in range(count):
                yield Mutant(package, path.relative_to(ROOT), operator, occurrence)


def run_tests(folder: Path, tests: str, timeout: float | None) -> bool:
    """Return whether the tests pass with the source in `folder`."""
    command = [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [*command, "-m", "not exhaustive", *tests.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(timeout) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


def main() -> int:
    """Try a sample of mutants; the exit code is 0 if at least 90 % of those that matter are killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), help="folders below src/separatrix")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=12, help="faults in each package")
    options = parser.parse_args()
    known = tomllib.loads((ROOT / "tests/equivalent_mutants.toml").read_text(encoding="utf-8"))
    equivalents = {(entry["file"], entry["becomes"]) for entry in known.get("mutant", [])}
    killed, survivors = 0, []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "repository"
        ignored = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, folder, ignore=ignored)
        for package in options.packages:
            started = time.monotonic()
            if not run_tests(folder, PACKAGES[package], None):
                raise SystemExit(f"{package}: its tests fail without any fault")
            limit = 20 + TIMEOUT_FACTOR * (time.monotonic() - started)
            candidates = list(list_mutants(package))
            random.Random(f"{options.seed} {package}").shuffle(candidates)
            tried = 0
            for mutant in candidates:
                diff = mutant.diff()
                if not diff or (str(mutant.file), diff[-1][1:].strip()) in equivalents:
                    continue
                if tried == options.count:
                    break
                tried += 1
                target = folder / mutant.file
                target.write_text(mutant.source(), encoding="utf-8")
                survives = run_tests(folder, PACKAGES[package], limit)
                shutil.copy(ROOT / mutant.file, target)
                killed += not survives
                print("survives" if survives else "killed  ", mutant.file, *diff, sep="\n    ", flush=True)
                if survives:
                    survivors.append(mutant)
    total = killed + len(survivors)
    print(f"{killed} of {total} faults killed by the tests of their package ({killed / max(1, total):.0%})")
    for mutant in survivors:
        print(f"survives: {mutant.file}", *mutant.diff(), sep="\n    ")
    return 0 if killed >= 0.9 * total else 1


if __name__ == "__main__":
    sys.exit(main())
