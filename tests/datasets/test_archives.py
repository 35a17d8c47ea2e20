"""Archives of strangers: cut short, endless, with names and links that lead elsewhere."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from separatrix.datasets import archives
from separatrix.datasets.archives import gunzip, untar, unzip
from separatrix.errors import UsageError
from tiny_data import tar

MOST = 1 << 16


def zipped(members: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return made.getvalue()


def members(data: bytes, most: int = MOST) -> dict[str, bytes]:
    return dict(untar(data, lambda name: not name.endswith(".skip"), most, "x.tgz"))


def link(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


def test_what_is_sound_is_read() -> None:
    packed = tar({"a/b.txt": b"one", "a/c.skip": b"two", "d": b""})
    assert members(packed) == {"a/b.txt": b"one", "d": b""}
    assert unzip(zipped({"enwik8": b"text", "more/x": b""}), "enwik8", 4, "x.zip") == b"text"
    assert gunzip(gzip.compress(b"a") + gzip.compress(b"b"), 2, "x.gz") == b"ab"


@pytest.mark.parametrize("cut", [0, 1, 5, 30, 200, -9, -1])
def test_what_is_cut_short_is_refused(cut: int) -> None:
    content = bytes(range(256)) * 40
    for whole, read in (
        (gzip.compress(content), lambda data: gunzip(data, MOST, "x")),
        (zipped({"enwik8": content}), lambda data: unzip(data, "enwik8", MOST, "x")),
        (tar({"a": content}), members),
    ):
        with pytest.raises(UsageError, match="is damaged or cut short"):
            read(whole[:cut])


def test_damage_in_the_midst_is_refused() -> None:
    for whole, read in (
        (gzip.compress(b"one two three" * 99), lambda data: gunzip(data, MOST, "x")),
        (tar({"a": b"one two three" * 99}), members),
    ):
        damaged = bytearray(whole)
        damaged[len(damaged) // 2] ^= 0xFF
        with pytest.raises(UsageError, match="is damaged or cut short"):
            read(bytes(damaged))


def test_bombs_are_refused_before_they_are_unpacked() -> None:
    bomb = bytes(50_000_000)
    with pytest.raises(UsageError, match="x unpacks to more than 1,000 bytes"):
        gunzip(gzip.compress(bomb), 1000, "x")
    with pytest.raises(UsageError, match="x unpacks to more than 1,000 bytes"):
        unzip(zipped({"enwik8": bomb}), "enwik8", 1000, "x")
    for name in ("wanted", "not.skip"):
        with pytest.raises(UsageError, match=r"x.tgz unpacks to more than 100,000 bytes"):
            members(tar({name: bomb}), 100_000)


def test_a_header_that_promises_terabytes_is_refused() -> None:
    """tarfile reads an extended header whole, however large it says to be."""
    huge = tarfile.TarInfo("x")
    huge.type, huge.size = tarfile.XHDTYPE, 1 << 40
    head = huge.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(UsageError, match=r"unpacks to more than|is damaged or cut short"):
        members(gzip.compress(head + bytes(10_000_000)))


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "..\\x", "a/.."])
def test_names_that_lead_out_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a name that leads out of its folder"):
        members(tar({"good": b"1", name: b"2"}))
    with pytest.raises(UsageError, match="a name that leads out of its folder"):
        unzip(zipped({"enwik8": b"1", name: b"2"}), "enwik8", MOST, "x")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind: bytes) -> None:
    with pytest.raises(UsageError, match=r"x.tgz has data in it, which is a link or a device; refused"):
        members(tar({"data": link("data", kind, "/etc/passwd")}))


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    many = {str(i): b"" for i in range(4)}
    with pytest.raises(UsageError, match="more than 3 members"):
        members(tar(many))
    with pytest.raises(UsageError, match="more than 3 members"):
        unzip(zipped(many), "0", MOST, "x")


def test_what_is_not_in_a_zip_file_is_said() -> None:
    with pytest.raises(UsageError, match=r"x.zip has no enwik8 in it"):
        unzip(zipped({"other": b""}), "enwik8", MOST, "x.zip")
