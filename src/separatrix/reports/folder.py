"""Putting files into a folder whole or not at all, and leaving everything else there alone."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from separatrix.parameters import UsageError


class Folder:
    """A place to write into, tried before any work is done and filled only when all of it is done.

    Files are first written to a hidden folder: beside `out` where that does not exist yet, so that
    it can be renamed in one step, else inside it, so that both are on one file system.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._new = not out.exists()
        self._made: list[Path] = []
        self._stage = out / f".separatrix-{secrets.token_hex(4)}"
        if self._new:
            whole = out.resolve()
            self._stage = whole.with_name(f".{whole.name}-{secrets.token_hex(4)}")

    def __enter__(self) -> Folder:
        if self.out.exists() and not self.out.is_dir():
            raise UsageError(f"cannot write {self.out}: it is a file, not a folder")
        try:
            self._make_parents(self._stage.parent)
            self._stage.mkdir()
        except OSError as error:
            self._clean()
            raise self._refusal(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clean()

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write every file, then move them into place, the first of them last."""
        try:
            for name, content in files.items():
                path = self._stage / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if self._new and not self.out.exists():
                self._stage.rename(self.out)
                self._made.clear()
                return
            for name in files:
                (self.out / name).parent.mkdir(parents=True, exist_ok=True)
            for name in reversed(list(files)):
                (self._stage / name).replace(self.out / name)
            self._made.clear()
        except OSError as error:
            raise self._refusal(error) from None

    def _make_parents(self, folder: Path) -> None:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir()
            self._made.append(each)

    def _clean(self) -> None:
        """Remove what was only made for the work, never what holds anything else."""
        shutil.rmtree(self._stage, ignore_errors=True)
        for folder in reversed(self._made):
            if not any(folder.iterdir()):
                folder.rmdir()

    def _refusal(self, error: OSError) -> UsageError:
        return UsageError(f"cannot write {self.out}: {(error.strerror or str(error)).lower()}")
