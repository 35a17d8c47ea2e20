"""Read members of gzip, zip and tar files in memory and within limits; nothing is extracted to disk.

The files may be hostile: a few bytes can unpack to terabytes, a name can point outside its folder, a link can
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
from typing import IO, NoReturn

from separatrix.core.errors import UsageError, one_line

MAX_MEMBERS = 200_000
"""More members than any archive of these data sets: aclImdb has 100,021 files."""
CHUNK_BYTES = 1 << 16
DAMAGE_ERRORS = (
    *(OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, NotImplementedError),
    *(ValueError, IndexError, OverflowError, RuntimeError, struct.error),
)
"""Exceptions of Python's modules on an archive that is truncated, damaged, encrypted or crafted.

`zipfile` raises ValueError for negative offsets and undecodable names, RuntimeError for encrypted members;
`tarfile` raises IndexError and RecursionError (a RuntimeError) for crafted headers.
"""
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods that can be read within limits: Python's bzip2 and LZMA readers unpack whole blocks."""
_CENTRAL_HEADER = b"PK\x01\x02"


def gunzip(data: bytes, limit: int, source: object) -> bytes:
    """Return the content of a gzip file of at most `limit` bytes; `source` names the file in errors.

    >>> gunzip(gzip.compress(b"digits"), 10, "a.gz")
    b'digits'
    >>> gunzip(gzip.compress(bytes(10**6)), 10, "a.gz")
    Traceback (most recent call last):
    separatrix.core.errors.UsageError: a.gz unpacks to more than 10 bytes
    """
    if not data:
        raise _damage_error(source, EOFError("it is empty"))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _read_limited(file, limit, source)
    except DAMAGE_ERRORS as error:
        raise _damage_error(source, error) from None


def unzip(data: bytes, name: str, limit: int, source: object) -> bytes:
    """Return the content of the member `name` of a zip file, of at most `limit` bytes."""
    # Counted here because zipfile builds an object for every member before it returns.
    if data.count(_CENTRAL_HEADER) > MAX_MEMBERS:
        raise UsageError(f"{source} has more than {MAX_MEMBERS:,} members")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                _require_inside(member.filename, source)
                if member.compress_type not in ZIP_METHODS:
                    raise UsageError(
                        f"{source} contains {member.filename!r}, compressed by method "
                        f"{member.compress_type}; only stored and deflated members are supported: repack it"
                    )
            if name not in archive.namelist():
                raise UsageError(f"{source} does not contain {name}")
            if archive.getinfo(name).file_size > limit:
                _refuse_size(limit, source)
            with archive.open(name) as file:
                return _read_limited(file, limit, source)
    except DAMAGE_ERRORS as error:
        raise _damage_error(source, error) from None


def untar(
    data: bytes, member_limit: Callable[[str], int | None], total_limit: int, source: object
) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of members of a tar.gz file, in the order of the file.

    `member_limit` maps a member's name to the largest size of its content, or to None for a member to skip.
    `total_limit` is the largest size of the unpacked archive, including skipped members and headers.
    """
    unpacked = io.BytesIO(gunzip(data, total_limit, source))
    try:
        with tarfile.open(fileobj=unpacked, mode="r:", tarinfo=_PlainMember) as archive:
            for count, member in enumerate(archive):
                _require_inside(member.name, source)
                if count >= MAX_MEMBERS:
                    raise UsageError(f"{source} has more than {MAX_MEMBERS:,} members")
                if member.issparse():
                    raise _SparseMember(member.name)
                if not (member.isreg() or member.isdir()):
                    raise UsageError(f"{source} contains {member.name}, a link or device; refused")
                limit = member_limit(member.name)
                if not member.isreg() or limit is None:
                    continue
                if not 0 <= member.size <= limit:
                    _refuse_size(limit, f"{member.name} in {source}")
                file = archive.extractfile(member)
                content = b"" if file is None else _read_limited(file, limit, f"{member.name} in {source}")
                if len(content) != member.size:
                    raise EOFError(f"{member.name} has {len(content):,} bytes instead of {member.size:,}")
                yield member.name, content
    except _SparseMember as error:
        raise UsageError(f"{source} contains {error}, a sparse file; refused: pack it without holes") from None
    except DAMAGE_ERRORS as error:
        raise _damage_error(source, error) from None


class _SparseMember(Exception):
    """A tar member with holes, whose size a few bytes can make arbitrarily large; the message is its name."""


class _PlainMember(tarfile.TarInfo):
    """A tar member whose sparse map is never read from its content, where no header limits its length."""

    def _proc_gnusparse_10(self, next: tarfile.TarInfo, *_: object) -> NoReturn:
        raise _SparseMember(next.name)


def _read_limited(file: IO[bytes] | gzip.GzipFile, limit: int, source: object) -> bytes:
    """Read a stream to its end in chunks, so that memory grows with the content and not with the limit."""
    content = io.BytesIO()
    while chunk := file.read(min(CHUNK_BYTES, limit + 1 - content.tell())):
        content.write(chunk)
        if content.tell() > limit:
            _refuse_size(limit, source)
    return content.getvalue()


def _refuse_size(limit: int, source: object) -> NoReturn:
    raise UsageError(f"{source} unpacks to more than {limit:,} bytes")


def _require_inside(name: str, source: object) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\x00" in name or ":" in path.parts[:1]:
        raise UsageError(f"{source} contains {name!r}, a name that points outside its folder; refused")


def _damage_error(source: object, error: Exception) -> UsageError:
    return UsageError(f"{source} is damaged or truncated: {one_line(error, 100)}")
