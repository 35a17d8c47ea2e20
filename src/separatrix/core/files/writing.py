"""Writing one file whole or not at all, and finding out beforehand that it cannot be written.

A link is followed: what it leads to is written, and the link stays. Devices, pipes and what a process has
open (/dev/null, /dev/stdout) are written to as they are, never replaced. A file that is there keeps its
owner and its mode.
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
from separatrix.core.interrupts import unfinished

ANEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
PRIVATE = 0o600
MOST_LINKS = 40
"""As many as Linux follows."""
PATIENCE = 10
"""Seconds in which somebody must begin to read a pipe."""
TRIED = 4096
"""Bytes that a disk must have room for, or no work is begun."""
_DESCRIPTORS = re.compile(r"/(?:proc/(?:self|\d+)(?:/task/\d+)?|dev)/fd")


def require_writable(path: Path, endings: Collection[str] = ()) -> None:
    """Refuse a path that cannot be written to, before the work is done."""
    if endings and path.suffix not in endings:
        with _told(path):
            if path.is_dir():
                raise UsageError(f"cannot write {path}: it is a folder; name a file in it")
        known = ", ".join(sorted(endings))
        raise UsageError(f"{path} does not say what to write; let it end in one of {known}")
    with _told(path):
        if not _is_stream(path):
            require_room(_target(path).parent)


def require_room(folder: Path) -> None:
    """Write a little to a file without a future: permissions, a full disk and much else show at once."""
    path = _neighbour(folder)
    with unfinished(path):
        try:
            with os.fdopen(os.open(path, ANEW, PRIVATE), "wb") as file:
                file.write(bytes(TRIED))
        finally:
            path.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there in full, or not at all."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; it is at `path` once the block has ended, and nowhere if it fails."""
    with _told(path):
        if _is_stream(path):
            with _stream(path) as file:
                yield file
            return
        with Draft(path) as draft:
            yield draft.file
            draft.finish()
            draft.publish()


class Draft:
    """A file beside the one it will become, under a name that nobody can foresee.

    It is finished when it is on the disk, and published when it has taken the other's place; left before
    that, it is removed.
    """

    def __init__(self, path: Path) -> None:
        self.target = _target(path)
        known = _status(self.target)
        self._path = _neighbour(self.target.parent)
        self._mark = ExitStack()
        self._mark.enter_context(unfinished(self._path))
        descriptor = os.open(self._path, ANEW, 0o666 if known is None else PRIVATE)
        self.file: BinaryIO = os.fdopen(descriptor, "wb")
        if known is not None and os.name == "posix":
            with suppress(PermissionError):  # only root gives files away
                os.fchown(descriptor, known.st_uid, known.st_gid)
            with suppress(PermissionError):  # some file systems know no modes
                os.fchmod(descriptor, stat.S_IMODE(known.st_mode))

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what cannot be written on a full disk cannot be closed, either
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
        return  # some file systems know no such thing; the file itself is safe
    finally:
        os.close(descriptor)


def _neighbour(folder: Path) -> Path:
    return folder / f".separatrix-{secrets.token_hex(8)}"


def _status(path: Path) -> os.stat_result | None:
    """The status of a file, links followed by the system, which refuses those that others have laid."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _target(path: Path) -> Path:
    """The file to replace: at the end of all links, and one that may be written to."""
    known, target = _status(path), Path(os.path.realpath(path))
    if known is not None and stat.S_ISDIR(known.st_mode):
        raise UsageError(f"cannot write {path}: it is a folder")
    if known is not None and not stat.S_ISREG(known.st_mode):
        raise UsageError(f"cannot write {path}: it is no ordinary file")
    if not target.parent.is_dir():
        shown = target.parent if path.is_symlink() else path.parent
        raise UsageError(f"cannot write {path}: there is no folder {shown}")
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: {path.parent} may not be written to")
    if known is not None and not os.access(target, os.W_OK):
        raise UsageError(f"cannot write {path}: it may not be written to")
    return target


def _is_stream(path: Path) -> bool:
    """Whether a path takes bytes as they come: a character device, a pipe, or what a process has open."""
    known = _status(path)
    if known is None:
        return False
    return stat.S_ISCHR(known.st_mode) or stat.S_ISFIFO(known.st_mode) or _descriptor(path) is not None


def _descriptor(path: Path) -> str | None:
    """The number behind /dev/stdout, /dev/fd/1 and the like."""
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if path.name.isdigit() and _DESCRIPTORS.fullmatch(folder):
            return path.name if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") else ""
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _stream(path: Path) -> BinaryIO:
    """Open a stream as it is; what this process has open is shared, so that it goes on where it stands."""
    number = _descriptor(path)
    if number:
        return os.fdopen(os.dup(int(number)), "wb")
    return os.fdopen(_opened_for_a_reader(path), "wb")


def _opened_for_a_reader(path: Path) -> int:
    """Open a pipe; a reader is waited for, but not without end."""
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
def _told(path: Path) -> Iterator[None]:
    """Turn an error of the system into one line about the file."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
