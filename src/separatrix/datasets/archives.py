"""What is inside gzip, zip and tar files, in memory and within bounds; nothing is extracted to a disk.

Such files come from strangers: a few bytes may unpack to terabytes, a name may lead out of a folder, a link
anywhere. An archive with anything like that is refused as a whole, in one line.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from separatrix.errors import UsageError, one_line

MOST_MEMBERS = 200_000
"""More members than any archive of these data sets has: aclImdb has 100,021 files."""
BROKEN = (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, NotImplementedError)
"""What Python's modules raise when an archive is cut short or damaged."""


def gunzip(data: bytes, most: int, where: object) -> bytes:
    """The content of a gzip file, of at most `most` bytes; `where` names the file in what is refused.

    >>> gunzip(gzip.compress(b"digits"), 10, "a.gz")
    b'digits'
    >>> gunzip(gzip.compress(bytes(10**6)), 10, "a.gz")
    Traceback (most recent call last):
    separatrix.errors.UsageError: a.gz unpacks to more than 10 bytes
    """
    if not data:
        raise _broken(where, EOFError("it is empty"))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _bounded(file.read(most + 1), most, where)
    except BROKEN as error:
        raise _broken(where, error) from None


def unzip(data: bytes, name: str, most: int, where: object) -> bytes:
    """The file `name` in a zip file, of at most `most` bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if len(archive.infolist()) > MOST_MEMBERS:
                raise UsageError(f"{where} has more than {MOST_MEMBERS:,} members")
            for each in archive.infolist():
                _require_inside(each.filename, where)
            with archive.open(name) as file:
                return _bounded(file.read(most + 1), most, where)
    except KeyError:
        raise UsageError(f"{where} has no {name} in it") from None
    except (*BROKEN, RuntimeError) as error:  # RuntimeError: it is encrypted
        raise _broken(where, error) from None


def untar(
    data: bytes, wanted: Callable[[str], bool], most: int, where: object
) -> Iterator[tuple[str, bytes]]:
    """The members of a tar.gz file whose names are wanted, one after the other, in the order of the file.

    `most` bounds the bytes of all members together, wanted or not.
    """
    try:
        unpacked = _Bounded(data, most, where)
        with tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for count, member in enumerate(archive):
                _require_inside(member.name, where)
                if count >= MOST_MEMBERS:
                    raise UsageError(f"{where} has more than {MOST_MEMBERS:,} members")
                if not (member.isreg() or member.isdir()):
                    raise UsageError(f"{where} has {member.name} in it, which is a link or a device; refused")
                if member.isreg() and wanted(member.name):
                    file = archive.extractfile(member)
                    yield member.name, file.read() if file else b""
            unpacked.finish()
    except BROKEN as error:
        raise _broken(where, error) from None


class _Bounded(io.RawIOBase):
    """A gzip file as it is unpacked; more than so many bytes are an error, however they are asked for."""

    def __init__(self, data: bytes, most: int, where: object) -> None:
        self._file = gzip.GzipFile(fileobj=io.BytesIO(data))
        self._left, self._most, self._where = most, most, where

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found = self._file.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(found)
        if self._left < 0:
            raise UsageError(f"{self._where} unpacks to more than {self._most:,} bytes")
        return found

    def finish(self) -> None:
        """Read on to the end, where gzip has the checksum of it all."""
        while self.read(1 << 16):
            pass


def _bounded(content: bytes, most: int, where: object) -> bytes:
    if len(content) > most:
        raise UsageError(f"{where} unpacks to more than {most:,} bytes")
    return content


def _require_inside(name: str, where: object) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\x00" in name or ":" in path.parts[:1]:
        raise UsageError(f"{where} has {name!r} in it, a name that leads out of its folder; refused")


def _broken(where: object, error: Exception) -> UsageError:
    return UsageError(f"{where} is damaged or cut short: {one_line(error, 100)}")
