"""Everything that is wrong with a plan, each with its line, told at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from separatrix.errors import on_one_line
from separatrix.parameters import UsageError
from separatrix.sweeps.lines import Path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_SHOWN = 50


class PlanError(UsageError):
    """A plan that cannot be run, with all that is wrong with it."""

    def __init__(self, where: str, complaints: Sequence[tuple[int, str]]) -> None:
        ordered = sorted(dict.fromkeys(complaints))
        shown = [on_one_line(f"{where}, line {line}: {message}") for line, message in ordered[:MOST_SHOWN]]
        more = len(ordered) - len(shown)
        self._lines = [*shown, f"{where}: and {more} more mistakes"] if more else shown
        super().__init__("\n".join(self._lines))

    @property
    def lines(self) -> list[str]:
        """One line for each mistake."""
        return self._lines


class Complaints:
    """What was found wrong so far."""

    def __init__(self, where: str, lines: Mapping[Path, int]) -> None:
        self.where, self.lines = where, lines
        self.found: list[tuple[int, str]] = []

    def add(self, path: Path, message: str) -> None:
        """Complain of what stands at `path`, or of the nearest table around it that has a line."""
        while path and path not in self.lines:
            path = path[:-1]
        self.found.append((self.lines.get(path, 1), message))

    @contextmanager
    def at(self, path: Path) -> Iterator[None]:
        """Turn a UsageError into a complaint, and go on."""
        try:
            yield
        except UsageError as error:
            self.add(path, str(error))

    def settle(self) -> None:
        """Refuse the plan if anything is wrong."""
        if self.found:
            raise PlanError(self.where, self.found)
