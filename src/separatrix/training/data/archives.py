"""Read members of gzip, zip and tar files in memory and within bounds; nothing is extracted to disk.

The files may be hostile: a few bytes can unpack to terabytes, a name can lead out of its folder, a link can
point anywhere. Every function stops at the first byte beyond its limit, and an archive that contains a
suspicious member is refused as a whole, with one line.
"""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import IO, NoReturn, Protocol

from separatrix.core.errors import UsageError, one_line

MOST_MEMBERS = 200_000
"""More members than any archive of these data sets has: aclImdb has 100,021 files."""
MAX_EXTENDED_HEADER = 1 << 16
"""Bytes of a tar member's extended header (PAX or GNU long name); tarfile reads these whole."""
CHUNK = 1 << 16
BROKEN = (
    *(OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, NotImplementedError),
    *(ValueError, IndexError, OverflowError, RuntimeError, struct.error),
)
"""Exceptions of Python's modules on an archive that is truncated, damaged, encrypted or crafted.

`zipfile` raises ValueError for negative offsets and undecodable names, RuntimeError for encrypted members;
`tarfile` raises IndexError and RecursionError (a RuntimeError) for crafted headers.
"""
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods that can be read within bounds: Python's bzip2 and LZMA readers unpack whole blocks."""
_CENTRAL_HEADER = b"PK\x01\x02"


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def gunzip(data: bytes, most: int, where: object) -> bytes:
    """Return the content of a gzip file of at most `most` bytes; `where` names the file in errors.

    >>> gunzip(gzip.compress(b"digits"), 10, "a.gz")
    b'digits'
    >>> gunzip(gzip.compress(bytes(10**6)), 10, "a.gz")
    Traceback (most recent call last):
    separatrix.core.errors.UsageError: a.gz unpacks to more than 10 bytes
    """
    if not data:
        raise _broken(where, EOFError("it is empty"))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _read_bounded(file, most, where)
    except BROKEN as error:
        raise _broken(where, error) from None


def unzip(data: bytes, name: str, most: int, where: object) -> bytes:
    """Return the content of the member `name` of a zip file, of at most `most` bytes."""
    if data.count(_CENTRAL_HEADER) > MOST_MEMBERS:  # before zipfile builds an object for each of them
        raise UsageError(f"{where} has more than {MOST_MEMBERS:,} members")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                _require_inside(member.filename, where)
                if member.compress_type not in ZIP_METHODS:
                    raise UsageError(
                        f"{where} has {member.filename!r} in it, compressed by method "
                        f"{member.compress_type}; only stored and deflated members are read: pack it anew"
                    )
            try:
                wanted = archive.getinfo(name)
            except KeyError:
                raise UsageError(f"{where} has no {name} in it") from None
            if wanted.file_size > most:
                _refuse_size(most, where)
            with archive.open(wanted) as file:
                return _read_bounded(file, most, where)
    except BROKEN as error:
        raise _broken(where, error) from None


def untar(
    data: bytes, limit_of: Callable[[str], int | None], most: int, where: object
) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of members of a tar.gz file, in the order of the file.

    `limit_of` maps a member's name to the largest size of its content, or to None for a member to skip.
    `most` bounds the bytes of the whole unpacked archive, skipped members and headers included.
    """
    try:
        unpacked = _Bounded(data, most, where)
        with tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_PlainMember) as archive:
            for count, member in enumerate(archive):
                _require_inside(member.name, where)
                if count >= MOST_MEMBERS:
                    raise UsageError(f"{where} has more than {MOST_MEMBERS:,} members")
                if member.issparse():
                    raise _SparseMember(member.name)
                if not (member.isreg() or member.isdir()):
                    raise UsageError(f"{where} has {member.name} in it, which is a link or a device; refused")
                limit = limit_of(member.name)
                if not member.isreg() or limit is None:
                    continue
                if not 0 <= member.size <= limit:
                    _refuse_size(limit, f"{member.name} in {where}")
                file = archive.extractfile(member)
                yield member.name, b"" if file is None else _read_member(file, member, limit, where)
            unpacked.finish()
    except _SparseMember as error:
        raise UsageError(
            f"{where} has {error} in it, a sparse file; refused: pack it without holes"
        ) from None
    except BROKEN as error:
        raise _broken(where, error) from None


class _SparseMember(Exception):
    """A tar member with holes, which a few bytes can make arbitrarily large; the message is its name."""


class _PlainMember(tarfile.TarInfo):
    """A tar member whose headers are bounded, and whose sparse map is never read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _PlainMember:
        """Parse one header block; refuse sparse members and long extended headers before they are read."""
        member = super().frombuf(buf, encoding, errors)
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise _SparseMember(member.name)
        if not (member.isreg() or member.isdir()) and member.size > MAX_EXTENDED_HEADER:
            raise ValueError(f"a header of {member.size:,} bytes")
        return member

    def _proc_gnusparse_10(self, next: tarfile.TarInfo, *_: object) -> NoReturn:
        # This PAX format stores the map in the content of the member, where no header bounds its length.
        raise _SparseMember(next.name)


class _Bounded(io.RawIOBase):
    """An unpacked gzip stream that raises a UsageError beyond `most` bytes."""

    def __init__(self, data: bytes, most: int, where: object) -> None:
        self._file = gzip.GzipFile(fileobj=io.BytesIO(data))
        self._left, self._most, self._where = most, most, where

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        content = self._file.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            _refuse_size(self._most, self._where)
        return content

    def finish(self) -> None:
        """Read on to the end, where gzip verifies the checksum of the whole stream."""
        while self.read(CHUNK):
            pass


def _read_member(file: IO[bytes], member: tarfile.TarInfo, limit: int, where: object) -> bytes:
    content = _read_bounded(file, limit, f"{member.name} in {where}")
    if len(content) != member.size:
        raise EOFError(f"{member.name} has {len(content):,} bytes instead of {member.size:,}")
    return content


def _read_bounded(file: _Readable, most: int, where: object) -> bytes:
    """Read a stream to its end in chunks, so that memory grows with the content and not with the limit."""
    content = io.BytesIO()
    while chunk := file.read(min(CHUNK, most + 1 - content.tell())):
        content.write(chunk)
        if content.tell() > most:
            _refuse_size(most, where)
    return content.getvalue()


def _refuse_size(most: int, where: object) -> NoReturn:
    raise UsageError(f"{where} unpacks to more than {most:,} bytes")


def _require_inside(name: str, where: object) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\x00" in name or ":" in path.parts[:1]:
        raise UsageError(f"{where} has {name!r} in it, a name that leads out of its folder; refused")


def _broken(where: object, error: Exception) -> UsageError:
    return UsageError(f"{where} is damaged or cut short: {one_line(error, 100)}")
