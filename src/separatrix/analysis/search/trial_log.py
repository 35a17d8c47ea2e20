"""Finished trials as lines of JSON: a search that was stopped goes on from them.

Every line has a checksum; a damaged one is left out, and told by its number. One search at a time writes to a
log. The file is data alone: Optuna's own storages unpickle what they load, so they are not used here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from zlib import crc32

from separatrix.core.files.reading import read_whole
from separatrix.core.files.writing import require_writable
from separatrix.core.parameters import UsageError

FORMAT = "separatrix search 2"
OLDER = "separatrix search 1"
"""Without checksums. Such a log is read, and goes on with them."""
CHECKSUM = "checksum"
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
        self.lines: list[int] = []
        """On which line each trial that was read stands."""
        self.damaged: list[int] = []
        """Lines that are not what was written, and are left out."""
        self._whole = 0
        self._file: BinaryIO | None = None
        if path is None:
            return
        require_writable(path)
        if path.exists():
            self._file = self._locked("r+b")
            try:
                self._read(path)
            except BaseException:
                self.close()
                raise

    def _locked(self, mode: str) -> BinaryIO:
        """The file, for this search alone."""
        assert self.path is not None
        with _told(self.path):
            file = cast(BinaryIO, self.path.open(mode))
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # not on Windows
            return file
        except OSError:
            file.close()
            raise _in_use(self.path) from None
        return file

    def close(self) -> None:
        """Close the log, and let others write to it."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, path: Path) -> None:
        data = read_whole(path, LARGEST, "the log of a search")
        if not data:
            return
        self._whole = data.rfind(b"\n") + 1
        first, *lines = data[: self._whole].split(b"\n")[:-1] or [b""]
        try:
            read = json.loads(first)
            known = read.pop("format")
            if known not in (FORMAT, OLDER) or (known == FORMAT and not _unsealed(read | {"format": known})):
                raise ValueError
            read.pop(CHECKSUM, None)
            header = Header(**read)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(f"{path} is not the log of a search; give another file") from None
        if header != self.header:
            mine, theirs = (_words(each) for each in (self.header, header))
            raise UsageError(f"{path} belongs to another search ({theirs}, not {mine}); give another file")
        for number, line in enumerate(lines, 2):
            trial = _trial(line, bare=known == OLDER)
            if trial is None:
                self.damaged.append(number)
            else:
                self.trials.append(trial)
                self.lines.append(number)

    def add(self, trial: Trial) -> None:
        """Keep a trial; a line that was cut off when the machine stopped is written over."""
        self.trials.append(trial)
        if self.path is None:
            return
        first = [] if self._whole else [{"format": FORMAT, **asdict(self.header)}]
        text = "".join(_sealed(line) + "\n" for line in [*first, asdict(trial)])
        if self._file is None:
            try:
                self._file = self._locked("xb")
            except FileExistsError:
                raise _in_use(self.path) from None
        with _told(self.path):
            self._file.truncate(self._whole)
            self._file.seek(self._whole)
            self._file.write(text.encode())
            self._file.flush()
        self._whole += len(text.encode())


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


def _in_use(path: Path) -> UsageError:
    return UsageError(f"{path} is in use by another search; wait until it ends, or give another file")


def _sum(line: Mapping[str, Any]) -> int:
    """The checksum of all but the checksum itself."""
    rest = {name: value for name, value in line.items() if name != CHECKSUM}
    return crc32(json.dumps(rest, sort_keys=True).encode())


def _sealed(line: Mapping[str, Any]) -> str:
    return json.dumps({**line, CHECKSUM: _sum(line)}, ensure_ascii=False)


def _unsealed(line: Mapping[str, Any]) -> bool:
    return line.get(CHECKSUM) == _sum(line)


def _words(header: Header) -> str:
    return f"{header.x} over {header.y}, {header.space}, seed {header.seed}"


def _trial(line: bytes, bare: bool) -> Trial | None:
    """What was written; None where it is not that. In an old log lines may be bare of a checksum."""
    try:
        data: Any = json.loads(line)
        if not (_unsealed(data) or (bare and CHECKSUM not in data)):
            return None
        data.pop(CHECKSUM, None)
        trial = Trial(**data)
        whole = all(isinstance(x, int) and not isinstance(x, bool) for x in trial.choices.values())
        sound = isinstance(trial.question, str) and isinstance(trial.found, bool) and whole
        return trial if sound and isinstance(trial.value, float) and math.isfinite(trial.value) else None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
