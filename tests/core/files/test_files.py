"""Files are written whole or not at all, and nothing else is touched."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from separatrix.core.files.folder import Folder
from separatrix.core.files.writing import Draft, require_distinct, require_writable, whole_file, write_whole
from separatrix.core.parameters import UsageError

CLI = [sys.executable, "-c", "from separatrix.cli import main; main()"]
POINT = ["n=1000", "d=102", "m=12", "a0=0.01", "a1=1.2", "b=0.2", "c=0.1"]
AS_ROOT = os.geteuid() == 0


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def folder_write(path: Path, content: bytes) -> None:
    """Through the writer of whole folders."""
    with Folder(path.parent) as folder:
        folder.fill({path.name: content})


WRITERS = pytest.mark.parametrize("write", [write_whole, folder_write])
Write = Callable[[Path, bytes], None]


@pytest.fixture
def masked() -> object:
    before = os.umask(0o027)
    yield
    os.umask(before)


@WRITERS
def test_a_file_that_is_there_keeps_its_mode_and_a_new_one_follows_the_umask(
    write: Write, tmp_path: Path, masked: object
) -> None:
    private, new = tmp_path / "private.csv", tmp_path / "new.csv"
    private.write_bytes(b"old")
    for kept in (0o600, 0o604, 0o640):
        private.chmod(kept)
        write(private, b"text")
        assert (mode(private), private.read_bytes()) == (kept, b"text")
    write(new, b"text")
    assert mode(new) == 0o640


@pytest.mark.skipif(not AS_ROOT, reason="only root gives files away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"")
    os.chown(path, 12345, 23456)
    write_whole(path, b"text")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@WRITERS
def test_a_link_stays_and_what_it_leads_to_is_written(write: Write, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    for name, content in (("there", b"old"), ("not-yet", None)):
        target, link = tmp_path / "far" / name, tmp_path / f"{name}.csv"
        if content is not None:
            target.write_bytes(content)
        link.symlink_to(Path("far") / name)
        write(link, b"new")
        assert link.is_symlink()
        assert target.read_bytes() == b"new"


def test_what_lies_where_a_file_in_the_making_used_to_lie_is_left_alone(tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.write_bytes(b"gold")
    out = tmp_path / "x.csv"
    (tmp_path / ".x.csv.partial").symlink_to(treasure)
    write_whole(out, b"text")
    assert treasure.read_bytes() == b"gold"
    assert (tmp_path / ".x.csv.partial").is_symlink()
    assert out.read_bytes() == b"text"


def test_names_of_files_in_the_making_are_not_foreseen_and_never_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Draft(tmp_path / "x") as one, Draft(tmp_path / "x") as other:
        made = names(tmp_path)
        assert len(made) == 2
        assert one.target == other.target
    assert names(tmp_path) == []
    monkeypatch.setattr("secrets.token_hex", lambda _: "foreseen")
    (tmp_path / ".separatrix-foreseen").symlink_to(tmp_path / "treasure")
    with pytest.raises(UsageError, match=r"cannot write .*: file exists"):
        write_whole(tmp_path / "x", b"text")
    assert names(tmp_path) == [".separatrix-foreseen"]


def read_pipe(path: Path, into: list[bytes]) -> threading.Thread:
    thread = threading.Thread(target=lambda: into.append(path.read_bytes()))
    thread.start()
    return thread


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, link, got = tmp_path / "pipe.json", tmp_path / "link.json", list[bytes]()
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        require_writable(path, (".json",))
        reader = read_pipe(pipe, got)
        write_whole(path, b"text")
        reader.join()
        assert pipe.is_fifo()
    assert got == [b"text", b"text"]
    assert link.is_symlink()
    assert names(tmp_path) == ["link.json", "pipe.json"]


def test_a_device_is_never_replaced(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"")
    except OSError:
        pytest.skip("no devices can be made here")
    command = [*CLI, "verdict", "spike", "softmax", *POINT, "--certificate", str(device)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert device.is_char_device()
    assert names(tmp_path) == ["null"]


def test_standard_output_goes_on_where_it_stands(tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from separatrix.core.files.writing import write_whole\n"
    program += "print('before', flush=True); write_whole(Path(sys.argv[1]), b'text\\n'); print('after')"
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        out = tmp_path / "out"
        with out.open("wb") as file:
            subprocess.run([sys.executable, "-c", program, name], stdout=file, check=True)
        assert out.read_text() == "before\ntext\nafter\n"
        piped = subprocess.run([sys.executable, "-c", program, name], capture_output=True, check=True)
        assert piped.stdout == out.read_bytes()
    assert Path("/dev/stdout").is_symlink()


def test_a_socket_and_a_folder_are_refused(tmp_path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        (tmp_path / "folder").mkdir()
        (tmp_path / "loop").symlink_to("loop")
        (tmp_path / "lost").symlink_to("nowhere/x")
        said = {
            "socket": "it is not a regular file",
            "folder": "it is a folder",
            "nowhere/x": "there is no folder",
            "loop": "too many levels of symbolic links",
            "lost": "there is no folder",
            "socket/x": "not a directory",
            "x" * 300: "file name too long",
        }
        before = names(tmp_path)
        for name, words in said.items():
            for refuse in (require_writable, lambda path: write_whole(path, b"")):
                with pytest.raises(UsageError, match=f"cannot write .*: {words}"):
                    refuse(tmp_path / name)
        assert names(tmp_path) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError(), OSError(errno.ENOSPC, "No space left")])
def test_nothing_is_left_of_what_failed(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"old")
    expected = UsageError if isinstance(error, OSError) else type(error)

    def fail() -> None:
        with whole_file(path) as file:
            file.write(b"half")
            file.flush()
            raise error

    with pytest.raises(expected):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x.csv"]


def test_a_full_disk_is_told_before_the_work_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on the size of files stands for the disk: both say so when they are written to."""
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from separatrix.core.files.writing import require_writable, write_whole\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "limit = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "try: require_writable(Path('x')); print('begun'); write_whole(Path('x'), bytes(100_000))\n"
        "except Exception as error: print(error)"
    )
    for limit, said in ((100, ["cannot"]), (20_000, ["begun", "cannot"])):
        command = [sys.executable, "-c", program, str(limit)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert [line.split()[0] for line in done.stdout.splitlines()] == said
        assert names(tmp_path) == []


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        happened.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        happened.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    write_whole(tmp_path / "x", b"text")
    assert happened == ["file", "name", "folder"]
    happened.clear()
    with Folder(tmp_path / "new") as folder:
        folder.fill({"report.html": b"page", "figures/a.png": b"a"})
    assert happened == ["file", "file", "name", "folder", "name", "folder", "folder"]


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_what_may_not_be_written_to_is_left(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o400)
    with pytest.raises(UsageError, match="may not be written to"):
        write_whole(path, b"new")
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="may not be written to"):
        require_writable(tmp_path / "y")
    tmp_path.chmod(0o700)


def test_a_folder_that_could_not_be_filled_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_bytes(b"old")
    (tmp_path / "taken").mkdir()
    for files in ({"report.html": b"new", "taken": b"new"}, {"figures/a.png": b"new", "taken": b"new"}):
        with pytest.raises(UsageError, match="cannot write"), Folder(tmp_path) as folder:
            folder.fill(files)
        assert names(tmp_path) == ["report.html", "taken"]
        assert (tmp_path / "report.html").read_bytes() == b"old"


def test_options_name_different_files(tmp_path: Path) -> None:
    first, link = tmp_path / "a.json", tmp_path / "b.json"
    link.symlink_to(first)
    require_distinct(certificate=first, out=tmp_path / "c.json", coq=None)
    require_distinct(certificate=Path("/dev/null"), out=Path("/dev/null"))
    with pytest.raises(UsageError, match=r"^--certificate and --out would write the same file, .*b\.json"):
        require_distinct(certificate=first, out=link)
