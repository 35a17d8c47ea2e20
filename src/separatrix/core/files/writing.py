"""Writing a file atomically, and checking beforehand that it can be written.

Symbolic links are followed: their target is written, and the link stays. Devices, pipes and open file
descriptors (/dev/null, /dev/stdout) are written to and never replaced. An existing file keeps its owner and
mode.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from separatrix.core.errors import UsageError
from separatrix.core.interrupts import mark_unfinished

ANEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
PRIVATE = 0o600
MOST_LINKS = 40
"""The maximum number of symbolic links that Linux follows."""
PATIENCE = 10
"""Seconds within which a reader must open a pipe."""
TRIED = 4096
"""Bytes of free disk space required before work begins."""
_DESCRIPTORS = re.compile(r"/(?:proc/(?:self|\d+)(?:/task/\d+)?|dev)/fd")


def require_writable(path: Path, endings: Collection[str] = ()) -> None:
    """Raise a UsageError if a path cannot be written, before any work is done."""
    if endings and path.suffix not in endings:
        with describe_write_errors(path):
            if path.is_dir():
                raise UsageError(f"cannot write {path}: it is a folder; name a file in it")
        allowed_endings = ", ".join(sorted(endings))
        raise UsageError(f"{path} does not say what to write; let it end in one of {allowed_endings}")
    with describe_write_errors(path):
        if not _is_stream(path):
            require_room(_target(path).parent)


def require_distinct(**files: Path | None) -> None:
    """Raise a UsageError if two options name one file, of which the second would overwrite the first."""
    options: dict[str, str] = {}
    for option, path in files.items():
        if path is None or _is_stream(path):
            continue
        first = options.setdefault(os.path.realpath(path), option)
        if first != option:
            raise UsageError(f"--{first} and --{option} would write the same file, {path}; name two files")


def require_room(folder: Path) -> None:
    """Write a temporary file, which reveals missing permissions or a full disk."""
    path = _neighbour(folder)
    with mark_unfinished(path):
        try:
            with os.fdopen(os.open(path, ANEW, PRIVATE), "wb") as file:
                file.write(bytes(TRIED))
        finally:
            path.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears at `path` when the block ends, and not at all if it fails."""
    with describe_write_errors(path):
        if _is_stream(path):
            with _stream(path) as file:
                yield file
            return
        with Draft(path) as draft:
            yield draft.file
            draft.finish()
            draft.publish()


class Draft:
    """A temporary file with an unpredictable name next to its target.

    `finish` syncs it to the disk, and `publish` moves it into place; otherwise it is removed on exit.
    """

    def __init__(self, path: Path) -> None:
        self.target = _target(path)
        status = _status(self.target)
        self._path = _neighbour(self.target.parent)
        self._mark = ExitStack()
        self._mark.enter_context(mark_unfinished(self._path))
        descriptor = os.open(self._path, ANEW, 0o666 if status is None else PRIVATE)
        self.file: BinaryIO = os.fdopen(descriptor, "wb")
        if status is not None and os.name == "posix":
            with suppress(PermissionError):  # only root may change the owner
                os.fchown(descriptor, status.st_uid, status.st_gid)
            with suppress(PermissionError):  # some file systems do not support modes
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode))

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # on a full disk, closing fails as well
            self.file.close()
        self._path.unlink(missing_ok=True)
        self._mark.close()

    def finish(self) -> None:
        """Sync the draft to the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def publish(self) -> None:
        """Move the draft into place in one step."""
        # Only rename is atomic; syncing the folder afterwards makes the new name survive a power failure.
        self._path.replace(self.target)
        sync_folder(self.target.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        return  # not supported by some file systems; the file itself is safe
    finally:
        os.close(descriptor)


def _neighbour(folder: Path) -> Path:
    return folder / f".separatrix-{secrets.token_hex(8)}"


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file. The system follows links and rejects those of other users."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _target(path: Path) -> Path:
    """Return the file to replace, after following all links; raise a UsageError if it is not writable."""
    status, target = _status(path), Path(os.path.realpath(path))
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise UsageError(f"cannot write {path}: it is a folder")
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise UsageError(f"cannot write {path}: it is not a regular file")
    if not target.parent.is_dir():
        missing = target.parent if path.is_symlink() else path.parent
        raise UsageError(f"cannot write {path}: there is no folder {missing}")
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: {path.parent} may not be written to")
    if status is not None and not os.access(target, os.W_OK):
        raise UsageError(f"cannot write {path}: it may not be written to")
    return target


def _is_stream(path: Path) -> bool:
    """Whether a path is a character device, a pipe, or an open file descriptor."""
    status = _status(path)
    if status is None:
        return False
    return stat.S_ISCHR(status.st_mode) or stat.S_ISFIFO(status.st_mode) or _descriptor(path) is not None


def _descriptor(path: Path) -> str | None:
    """Return the descriptor number behind /dev/stdout, /dev/fd/1 and similar paths."""
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if path.name.isdigit() and _DESCRIPTORS.fullmatch(folder):
            return path.name if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") else ""
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _stream(path: Path) -> BinaryIO:
    """Open a stream. Descriptors of this process are duplicated, so that their position is shared."""
    number = _descriptor(path)
    if number:
        return os.fdopen(os.dup(int(number)), "wb")
    return os.fdopen(_opened_for_a_reader(path), "wb")


def _opened_for_a_reader(path: Path) -> int:
    """Open a pipe, waiting for a reader for a limited time."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


@contextmanager
def describe_write_errors(path: Path) -> Iterator[None]:
    """Convert an OSError to a one-line UsageError about the file."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
