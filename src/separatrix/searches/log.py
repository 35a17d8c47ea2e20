"""Finished trials as lines of JSON: a search that was stopped goes on from them.

The file is data alone. Optuna's own storages unpickle what they load, so they are not used here.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from separatrix.parameters import UsageError
from separatrix.parameters.files import require_writable
from separatrix.parameters.reading import read_whole

FORMAT = "separatrix search 1"
LARGEST = 200_000_000
"""Bytes of a file that is read at all."""


@dataclass(frozen=True)
class Header:
    """What a log belongs to."""

    x: str
    y: str
    space: str
    seed: int


@dataclass(frozen=True)
class Trial:
    """One finished trial: the question it was for, the choices made, how good it was."""

    question: str
    choices: dict[str, int]
    value: float
    found: bool
    failed: str | None = None
    """Why a mechanism had no answer."""


class Log:
    """A file of finished trials; with no path, nothing is kept."""

    def __init__(self, path: Path | None, header: Header) -> None:
        self.path, self.header = path, header
        self.trials: list[Trial] = []
        self._whole = 0
        if path is None:
            return
        require_writable(path)
        if path.exists():
            self._read(path)
        self._begun = path.exists() and self._whole > 0

    def _read(self, path: Path) -> None:
        data = read_whole(path, LARGEST, "the log of a search")
        if not data:
            return
        self._whole = data.rfind(b"\n") + 1
        try:
            lines = data[: self._whole].decode().splitlines()
            first = json.loads(lines[0])
            if first.pop("format") != FORMAT:
                raise ValueError
            header = Header(**first)
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(f"{path} is not the log of a search; give another file") from None
        if header != self.header:
            mine, theirs = (_words(each) for each in (self.header, header))
            raise UsageError(f"{path} belongs to another search ({theirs}, not {mine}); give another file")
        for number, line in enumerate(lines[1:], 2):
            self.trials.append(_trial(line, f"{path}, line {number}"))

    def add(self, trial: Trial) -> None:
        """Keep a trial; a line that was cut off when the machine stopped is written over."""
        self.trials.append(trial)
        if self.path is None:
            return
        lines = [] if self._begun else [{"format": FORMAT, **asdict(self.header)}]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [*lines, asdict(trial)])
        try:
            with self.path.open("r+b" if self.path.exists() else "xb") as file:
                file.truncate(self._whole)
                file.seek(self._whole)
                self._whole += file.write(text.encode())
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {(error.strerror or str(error)).lower()}") from None
        self._begun = True


def _words(header: Header) -> str:
    return f"{header.x} over {header.y}, {header.space}, seed {header.seed}"


def _trial(line: str, where: str) -> Trial:
    try:
        data: Any = json.loads(line)
        trial = Trial(**data)
        whole = all(isinstance(x, int) and not isinstance(x, bool) for x in trial.choices.values())
        sound = isinstance(trial.question, str) and isinstance(trial.found, bool) and whole
        if not sound or not isinstance(trial.value, float) or not math.isfinite(trial.value):
            raise ValueError
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise UsageError(f"{where}: this is no trial of a search; give another file") from None
    return trial
