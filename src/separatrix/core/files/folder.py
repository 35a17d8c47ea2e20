"""Writing several files to a folder atomically, leaving other files there untouched."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from separatrix.core.errors import UsageError
from separatrix.core.files.writing import Draft, describe_write_errors, require_room, sync_folder
from separatrix.core.interrupts import mark_unfinished

Writer = Callable[[BinaryIO], None]


class Folder:
    """An output folder that is checked before any work is done, and filled when all of it is done.

    A new folder is created next to `out` under a hidden name and renamed in one step. In an existing folder,
    files replace their namesakes once all of them are on the disk.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._new = not out.exists()
        self._made: list[Path] = []
        self._whole = out.resolve()
        self._stage = self._whole.with_name(f".separatrix-{secrets.token_hex(8)}")
        self._marks = ExitStack()

    def __enter__(self) -> Folder:
        if self.out.exists() and not self.out.is_dir():
            raise UsageError(f"cannot write {self.out}: it is a file, not a folder")
        try:
            with describe_write_errors(self.out):
                if self._new:
                    self._make_parents(self._stage.parent)
                    self._marks.enter_context(mark_unfinished(self._stage))
                    self._stage.mkdir()
                require_room(self._stage if self._new else self.out)
        except BaseException:  # __exit__ is not called for a block that was not entered
            self._clean()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._clean()

    @property
    def place(self) -> Path:
        """The folder for files written gradually, such as a store; removed unless `fill` is called."""
        return self._stage if self._new else self.out

    def fill(self, files: Mapping[str, bytes | Writer]) -> None:
        """Write every file, from bytes or by a function, then move them into place, the first one last."""
        is_new = self._new and not self.out.exists()
        with describe_write_errors(self.out):
            with ExitStack() as stack:
                drafts = []
                for name, content in files.items():
                    path = (self._stage if is_new else self.out) / name
                    self._make_parents(path.parent)
                    drafts.append(stack.enter_context(Draft(path)))
                    content(drafts[-1].file) if callable(content) else drafts[-1].file.write(content)
                    drafts[-1].finish()
                # The first file is published last: whoever finds it finds all the others, too.
                for draft in reversed(drafts):
                    draft.publish()
            if is_new:
                self._stage.rename(self._whole)
                sync_folder(self._whole.parent)
            self._made.clear()

    def _make_parents(self, folder: Path) -> None:
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir()
            self._made.append(parent)

    def _clean(self) -> None:
        """Remove temporary folders, but none that contain other files."""
        if self._new:
            shutil.rmtree(self._stage, ignore_errors=True)
        self._marks.close()
        for folder in reversed(self._made):
            with suppress(OSError):
                folder.rmdir()
