"""Findings from a file, evaluated again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.analysis.search._base import SearchFinding
from separatrix.analysis.search.inputs import InputFinding
from separatrix.analysis.search.instance import read_instance
from separatrix.analysis.search.points import PointFinding, PointQuestion
from separatrix.analysis.search.separation import separation
from separatrix.constructions import construction_named
from separatrix.core.files.reading import read_whole
from separatrix.core.parameters import UsageError
from separatrix.exact.verdicts.words import separates
from separatrix.mechanisms import MECHANISMS, Mechanism
from separatrix.mechanisms.load import mechanism_from

LARGEST = 10_000_000
"""Bytes of a file that is read at all."""


@dataclass(frozen=True)
class FindingsCheck:
    """Every finding of a file as it is now, and whether it still separates X from Y in the way it says."""

    x: Mechanism
    y: Mechanism
    findings: tuple[tuple[SearchFinding, bool], ...]

    @property
    def holds(self) -> bool:
        """Whether all findings still separate X from Y."""
        return all(holds for _, holds in self.findings)

    def as_json(self) -> dict[str, Any]:
        """What `separatrix search --check FILE --json` prints."""
        return {
            "x": self.x.spelled,
            "y": self.y.spelled,
            "holds": self.holds,
            "findings": [{"holds": holds, **finding.as_json()} for finding, holds in self.findings],
        }


def check_findings(path: Path, x: str | None = None, y: str | None = None) -> FindingsCheck:
    """Evaluate the findings that `search --out` wrote.

    Nothing in the file is run: mechanisms of the user's own must be named again by the user.
    """
    data = _read(path)
    one, other = _mechanism(data["x"], x, path), _mechanism(data["y"], y, path)
    try:
        found = tuple(_again(each, one, other) for each in data["findings"])
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if not found:
        raise UsageError(f"{path} holds no finding, so there is nothing to check")
    return FindingsCheck(one, other, found)


def _read(path: Path) -> dict[str, Any]:
    written = read_whole(path, LARGEST, "what a search found")
    try:
        data = json.loads(written)
        sound = isinstance(data["x"], str) and isinstance(data["y"], str)
        if not sound or not isinstance(data["findings"], list):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{path} does not hold what a search found; write one with `out`") from None
    return dict(data)


def _mechanism(spelled: str, given: str | None, path: Path) -> Mechanism:
    if given is None:
        if spelled.partition(":")[0] not in MECHANISMS:
            raise UsageError(f"{path} is about {spelled[:80]}; name both mechanisms on the command line too")
        return mechanism_from(spelled)
    found = mechanism_from(given)
    if found.spelled != spelled:
        raise UsageError(f"{path} is about {spelled[:80]}, not {found.spelled}")
    return found


def _again(data: Any, x: Mechanism, y: Mechanism) -> tuple[SearchFinding, bool]:
    if not isinstance(data, dict) or data.get("kind") not in (InputFinding.kind, PointFinding.kind):
        raise UsageError("a finding is of kind inputs or construction")
    shrunk = data.get("shrunk") is True
    if data["kind"] == InputFinding.kind:
        instance = read_instance(data.get("instance"))
        again = separation(x, y, instance)
        return InputFinding(instance, again, shrunk), again.way is not None and again.way == data.get("way")
    name, parameters = data.get("construction"), data.get("parameters")
    if not isinstance(name, str) or not isinstance(parameters, dict):
        raise UsageError("a finding of kind construction has a construction and parameters")
    question = PointQuestion(x, y, construction_named(name), {})
    point = question.finding(parameters, shrink=False)
    return PointFinding(point.x, point.y, shrunk), separates(point.x.word, point.y.word)
