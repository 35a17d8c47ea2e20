"""Hostile archives: truncated, endless, with names and links that point outside their folder."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from separatrix.core.errors import UsageError
from separatrix.training.data import archives
from separatrix.training.data.archives import gunzip, untar, unzip
from tiny_data import tar

MOST = 1 << 16
MAX_MEMORY = 8 << 20
"""Bytes that reading a small archive may allocate."""


@contextmanager
def bounded_memory(limit: int = MAX_MEMORY) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit, f"{peak:,} bytes were allocated"


def pack_zip(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return file.getvalue()


def read_members(data: bytes, most: int = MOST) -> dict[str, bytes]:
    return dict(untar(data, lambda name: None if name.endswith(".skip") else most, most, "x.tgz"))


def link_info(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_intact_archives_are_read() -> None:
    archive = tar({"a/b.txt": b"one", "a/c.skip": b"two", "d": b""})
    assert read_members(archive) == {"a/b.txt": b"one", "d": b""}
    assert unzip(pack_zip({"enwik8": b"text", "more/x": b""}), "enwik8", 4, "x.zip") == b"text"
    assert gunzip(gzip.compress(b"a") + gzip.compress(b"b"), 2, "x.gz") == b"ab"


@pytest.mark.parametrize("cut", [0, 1, 5, 30, 200, -9, -1])
def test_truncated_archives_are_refused(cut: int) -> None:
    content = bytes(range(256)) * 40
    for archive, read in (
        (gzip.compress(content), lambda data: gunzip(data, MOST, "x")),
        (pack_zip({"enwik8": content}), lambda data: unzip(data, "enwik8", MOST, "x")),
        (tar({"a": content}), read_members),
    ):
        with pytest.raises(UsageError, match="is damaged or truncated"):
            read(archive[:cut])


def test_corrupt_content_is_refused() -> None:
    for archive, read in (
        (gzip.compress(b"one two three" * 99), lambda data: gunzip(data, MOST, "x")),
        (tar({"a": b"one two three" * 99}), read_members),
    ):
        corrupt = bytearray(archive)
        corrupt[len(corrupt) // 2] ^= 0xFF
        with pytest.raises(UsageError, match="is damaged or truncated"):
            read(bytes(corrupt))


def test_bombs_are_refused_before_they_are_unpacked() -> None:
    bomb = bytes(2 * MAX_MEMORY)
    gzip_bomb, zip_bomb = gzip.compress(bomb), pack_zip({"enwik8": bomb})
    with bounded_memory(), pytest.raises(UsageError, match="x unpacks to more than 1,000 bytes"):
        gunzip(gzip_bomb, 1000, "x")
    with bounded_memory(), pytest.raises(UsageError, match="x unpacks to more than 1,000 bytes"):
        unzip(zip_bomb, "enwik8", 1000, "x")
    for name in ("wanted", "not.skip"):
        tar_bomb = tar({name: bomb})
        with bounded_memory(), pytest.raises(UsageError, match=r"x.tgz unpacks to more than 100,000 bytes"):
            read_members(tar_bomb, 100_000)


def test_a_header_that_promises_terabytes_is_refused() -> None:
    """tarfile reads an extended header into memory, at any size that it states."""
    huge = tarfile.TarInfo("x")
    huge.type, huge.size = tarfile.XHDTYPE, 1 << 40
    head = huge.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(UsageError, match=r"unpacks to more than|is damaged or truncated"):
        read_members(gzip.compress(head + bytes(10_000_000)))


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "..\\x", "a/.."])
def test_names_outside_the_folder_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a name that points outside its folder"):
        read_members(tar({"good": b"1", name: b"2"}))
    with pytest.raises(UsageError, match="a name that points outside its folder"):
        unzip(pack_zip({"enwik8": b"1", name: b"2"}), "enwik8", MOST, "x")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind: bytes) -> None:
    with pytest.raises(UsageError, match=r"x.tgz contains data, a link or device; refused"):
        read_members(tar({"data": link_info("data", kind, "/etc/passwd")}))


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    contents = {str(i): b"" for i in range(4)}
    with pytest.raises(UsageError, match="more than 3 members"):
        read_members(tar(contents))
    with pytest.raises(UsageError, match="more than 3 members"):
        unzip(pack_zip(contents), "0", MOST, "x")


def test_a_missing_zip_member_is_reported() -> None:
    with pytest.raises(UsageError, match=r"x.zip does not contain enwik8"):
        unzip(pack_zip({"other": b""}), "enwik8", MOST, "x.zip")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_stored_and_deflated_members_are_read(method: int) -> None:
    """Python's readers of bzip2 and LZMA have no limit: one small block can unpack to gigabytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        out.writestr("enwik8", bytes(2 * MAX_MEMORY))
    assert len(file.getvalue()) < 20_000
    with bounded_memory(), pytest.raises(UsageError, match="only stored and deflated members are supported"):
        unzip(file.getvalue(), "enwik8", MOST, "x.zip")


def test_a_stored_member_is_read() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out:
        out.writestr("enwik8", b"text")
    assert unzip(file.getvalue(), "enwik8", 4, "x.zip") == b"text"


def test_memory_grows_with_the_content_and_not_with_the_limit() -> None:
    with bounded_memory():
        assert gunzip(gzip.compress(b"small"), 1 << 40, "x.gz") == b"small"
        assert unzip(pack_zip({"enwik8": b"small"}), "enwik8", 1 << 40, "x.zip") == b"small"
        assert read_members(tar({"a": b"small"}), 1 << 40) == {"a": b"small"}


def pax_tar(headers: dict[str, str], content: bytes) -> bytes:
    info = tarfile.TarInfo("data")
    info.size, info.pax_headers = len(content), headers
    file = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as out,
    ):
        out.addfile(info, io.BytesIO(content))
    return file.getvalue()


def gnu_sparse(size: int) -> bytes:
    """Return an archive with a member in GNU's format: a hole, then 512 bytes of content."""
    info = tarfile.TarInfo("data")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    for start, number in ((386, size - 512), (398, 512), (483, size)):
        head[start : start + 12] = b"%011o " % number
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + 8 * 32 + sum(head[156:512]))
    return gzip.compress(bytes(head) + bytes(512) + bytes(1024))


REAL_SIZE = str(3 << 30)
SPARSE = {
    "GNU": gnu_sparse(3 << 30),
    "PAX 0.0": pax_tar({"GNU.sparse.size": REAL_SIZE, "GNU.sparse.offset": "0", "GNU.sparse.numbytes": "0"}, b""),
    "PAX 0.1": pax_tar({"GNU.sparse.map": "0,0", "GNU.sparse.size": REAL_SIZE}, b""),
    "PAX 1.0": pax_tar(
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": REAL_SIZE},
        b"2999999\n" + b"1\n" * 2_999_999,
    ),
}


@pytest.mark.parametrize("archive", SPARSE.values(), ids=SPARSE)
def test_sparse_members_are_refused_before_their_holes_are_filled(archive: bytes) -> None:
    with bounded_memory(), pytest.raises(UsageError, match=r"x.tgz contains data, a sparse file; refused"):
        read_members(archive, 1 << 40)


def test_a_member_larger_than_its_own_limit_is_refused() -> None:
    archive = tar({"small": b"1234", "large": b"12345"})
    sizes = {"small": 4, "large": 4}
    with pytest.raises(UsageError, match=r"large in x.tgz unpacks to more than 4 bytes"):
        dict(untar(archive, sizes.get, MOST, "x.tgz"))
    assert dict(untar(archive, {"small": 4}.get, MOST, "x.tgz")) == {"small": b"1234"}


def with_offset(archive: bytes, offset: int) -> bytes:
    """Return a zip file whose end record states another offset of the directory."""
    end = archive.rindex(b"PK\x05\x06")
    return archive[: end + 16] + struct.pack("<I", offset) + archive[end + 20 :]


def test_a_zip_directory_at_a_negative_offset_is_refused() -> None:
    with pytest.raises(UsageError, match=r"x.zip is damaged or truncated: negative seek value"):
        unzip(with_offset(pack_zip({"enwik8": b"text"}), 10**9), "enwik8", MOST, "x.zip")


def test_a_zip_directory_with_too_many_entries_is_refused_before_it_is_read() -> None:
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *6 * [0], *3 * [0], 1, *4 * [0], *2 * [0]) + b"a"
    count = 300_000
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count & 0xFFFF, count & 0xFFFF, count * len(entry), 0, 0)
    data = count * entry + end
    with bounded_memory(), pytest.raises(UsageError, match="more than 200,000 members"):
        unzip(data, "a", MOST, "x.zip")


READERS: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "gzip": (gzip.compress(bytes(range(256)) * 4), lambda data: gunzip(data, MOST, "x")),
    "zip": (
        pack_zip({"enwik8": bytes(range(256)) * 4, "other": b"1" * 99}),
        lambda data: unzip(data, "enwik8", MOST, "x"),
    ),
    "tar.gz": (tar({"a": b"12", "b.skip": b"3" * 600}), read_members),
    "tar": (
        gzip.decompress(pax_tar({"path": "data", "comment": "none"}, b"12" * 300)),
        lambda data: read_members(gzip.compress(data, 1)),
    ),
    "sparse tar": (gzip.decompress(SPARSE["PAX 0.0"]), lambda data: read_members(gzip.compress(data, 1))),
}


@pytest.mark.parametrize("name", READERS)
def test_random_damage_raises_only_usage_errors(name: str) -> None:
    archive, read = READERS[name]
    rng = random.Random(name)
    with bounded_memory(16 << 20):
        for _ in range(1500):
            corrupt = bytearray(archive)
            for _ in range(rng.choice((1, 1, 2, 8))):
                corrupt[rng.randrange(len(corrupt))] = rng.choice((0, 0xFF, 0x80, rng.randrange(256)))
            if rng.random() < 0.2:
                del corrupt[rng.randrange(len(corrupt)) :]
            with suppress(UsageError):
                read(bytes(corrupt))
