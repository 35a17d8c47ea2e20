"""Files that never end or never begin, numbers without bounds, closed streams, signals: one line, or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expectations import run as run_here
from separatrix.analysis.search import check_findings
from separatrix.analysis.search.trials import open_log
from separatrix.checker import check_file
from separatrix.core.errors import on_one_line
from separatrix.core.files import reading as reading_module
from separatrix.core.files import writing as files_module
from separatrix.core.files.reading import read_whole
from separatrix.core.files.writing import write_whole
from separatrix.core.numbers import parse_exact, parse_integer
from separatrix.core.parameters import UsageError
from separatrix.sweeps.plan import load_plan
from separatrix.sweeps.store import open_store

pytestmark = pytest.mark.usefixtures("default_signals")
EACH_SIGNAL = [
    signal.SIGINT,
    *(pytest.param(number, marks=pytest.mark.exhaustive) for number in (signal.SIGTERM, signal.SIGHUP)),
]
PATIENCE = 120
"""Seconds until a process counts as hanging."""
COMMAND = [sys.executable, "-c", "from separatrix.cli import main; main()"]
READERS: dict[str, Callable[[Path], object]] = {
    "a certificate": check_file,
    "findings": check_findings,
    "the log of a search": lambda path: open_log(path, "softmax over linear").__enter__(),
    "a plan": load_plan,
}
EVERY_READER = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


@EVERY_READER
def test_a_file_that_never_ends(read: Callable[[Path], object]) -> None:
    with pytest.raises(UsageError, match="/dev/zero"):
        read(Path("/dev/zero"))


@EVERY_READER
def test_a_pipe_that_is_never_written(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_module, "PATIENCE", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe"):
        read(tmp_path / "pipe")


@EVERY_READER
def test_a_link_to_itself(read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="loop"):
        read(tmp_path / "loop")


@EVERY_READER
@pytest.mark.parametrize("name", ["x" * 300, "."])
def test_what_is_no_file(read: Callable[[Path], object], name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read(tmp_path / name)


def test_a_pipe_that_is_written_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(f"sleep 0.1; printf 12; sleep 0.1; printf 3 > {tmp_path}/pipe", shell=True):
        assert read_whole(tmp_path / "pipe", 10, "a number") == b"3"


def test_a_pipe_that_nobody_reads_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "PATIENCE", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="cannot write"):
        write_whole(tmp_path / "pipe", b"x")


def test_a_store_is_no_pipe_and_no_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="is a device or a pipe, not a store"):
            open_store(str(path))


def test_a_name_of_no_file() -> None:
    with pytest.raises(UsageError, match="is not a valid file name"):
        read_whole(Path("a\x00b"), 10, "a number")


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_whole(tmp_path / "x", 5, "short") == b"12345"
    with pytest.raises(UsageError, match="is too large to be short: more than 4 bytes"):
        read_whole(tmp_path / "x", 4, "short")


@pytest.mark.parametrize(
    "written", ["1" * 4001 + "e1000", "1e9999999999999999999", "1e-4005", "9" * 5001, 10**4100, "1/" + "3" * 5000]
)
def test_numbers_are_measured_before_they_are_made(written: Any) -> None:
    for read in (parse_exact, parse_integer):
        with pytest.raises(UsageError, match="has more than 4000 digits") as refused:
            read(written, "n")
        assert len(str(refused.value)) < 100


@pytest.mark.parametrize("written", ["1__0", "_1", "1_", "١٢", "½", "1e", "1e+", "--1", "1/2/3", "1/-2", "0x1"])
def test_what_is_no_number(written: str) -> None:
    with pytest.raises(UsageError, match="is not a number"):
        parse_exact(written, "n")


def test_a_message_is_one_short_line() -> None:
    assert on_one_line("a\nb\t\x1b[31m \udcff") == "a b \\x1b[31m \\udcff"
    assert len(on_one_line("x" * 10_000)) < 200
    assert len(on_one_line("x " * 10_000)) < 2000


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RecursionError("deep"), "nested too deeply"),
        (MemoryError(), "more memory than there is"),
        (UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "surrogates"), "'a\\udcff' is not a text"),
        (OSError(40, "Too many levels of symbolic links", "loop"), "loop: too many levels of symbolic links"),
        (KeyError("x"), "This should not happen"),
    ],
)
def test_whatever_is_raised_becomes_one_line(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr("separatrix.checker.check_file", fail)
    code, out, err = run_here(capsys, "check", "x.json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def started(*words: str, **more: Any) -> subprocess.Popen[bytes]:
    """`separatrix` in a process of its own."""
    return subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, **more)


def end_of(process: subprocess.Popen[Any]) -> tuple[Any, Any]:
    """Wait for a process to end, and kill one that hangs: leaving its `with` block would wait for ever."""
    try:
        return process.communicate(timeout=PATIENCE)
    finally:
        process.kill()


def test_streams_that_cannot_show_everything() -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = ("list", "constructions")
    done = subprocess.run([*COMMAND, *words], env=ascii_only, capture_output=True, check=True)
    assert done.stdout.decode("ascii")
    named = subprocess.run([*COMMAND, "check", b"\xff.json"], capture_output=True, check=False)
    assert (named.returncode, named.stderr) == (2, b"separatrix: cannot read \\udcff.json: no such file or directory\n")


def test_streams_that_are_closed_or_full() -> None:
    with Path("/dev/full").open("wb") as full, started("list", "constructions", stdout=full) as process:
        assert process.communicate()[1] == b"separatrix: no space left on device\n"
    assert process.returncode == 2
    closed = subprocess.run(
        ["sh", "-c", '"$@" >&- 2>&- <&-', "sh", *COMMAND, "list", "constructions"], capture_output=True, check=False
    )
    assert (closed.returncode, closed.stdout, closed.stderr) == (0, b"", b"")


@pytest.mark.parametrize("words", [("list", "constructions"), ("list", "constructions", "--json"), ("--help",)])
def test_nobody_reads_any_more(words: tuple[str, ...]) -> None:
    unread, written = os.pipe()
    os.close(unread)
    with started(*words, stdout=written) as process:
        os.close(written)
        assert process.communicate()[1] == b""
    assert process.returncode == -signal.SIGPIPE


def test_an_interrupt_while_modules_are_imported() -> None:
    program = (
        "import os, signal, sys, threading\n"
        "from separatrix.cli import main\n"
        "class Late:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == os.environ['LATE']:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Late())\n"
        "main()\n"
    )
    for module in ("typer", "separatrix.cli.application", "separatrix.checker"):
        command, late = [sys.executable, "-c", program, "check", "x"], {**os.environ, "LATE": module}
        done = subprocess.run(command, env=late, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (130, b"separatrix: interrupted\n")


@pytest.mark.parametrize(
    "words",
    [
        ("verdict", "spike", "softmax"),
        ("verdict", "spike", "mine.py:attend"),
        ("sweep", "paper"),
        ("learn", "needle", "softmax"),
        ("explore", "--no-browser", "--port", "0"),
        ("reproduce",),
        ("list", "mechanisms"),
    ],
    ids=" ".join,
)
def test_a_current_folder_that_was_deleted_is_told_in_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    program = "import os, sys; os.rmdir(os.getcwd()); from separatrix.cli import main; main()"
    (tmp_path / "gone").mkdir()
    command = [sys.executable, "-P", "-c", program, *words]
    done = subprocess.run(command, cwd=tmp_path / "gone", capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "separatrix: the current folder cannot be used: it was deleted; go to another one (cd) and give the "
        "command again\n"
    )


SLOW_CALL = """
import ctypes, pathlib
def attend(q, k, v):
    pathlib.Path("begun").touch()
    mutex = ctypes.create_string_buffer(128)
    for _ in range(2):  # the second call never returns, and no signal interrupts it
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
    return v
"""


@pytest.mark.parametrize("number", EACH_SIGNAL)
def test_a_signal_does_not_wait_for_compiled_code(number: signal.Signals, tmp_path: Path) -> None:
    """Python runs no handler before the call returns, which it never does."""
    (tmp_path / "slow.py").write_text(SLOW_CALL)
    program = (
        "import pathlib\n"
        "from separatrix.cli import main\n"
        "from separatrix.core.interrupts import temporary_folder\n"
        "with temporary_folder('half-', pathlib.Path('.').resolve()):\n"
        "    main()\n"
    )
    words = ["verdict", "spike", "slow.py:attend", "n=100", "--engine", "dense"]
    command = [sys.executable, "-c", program, *words]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + PATIENCE
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        assert list(tmp_path.glob("half-*"))
        time.sleep(0.5)  # so that it is in the call; a signal before it ends the process as well
        process.send_signal(number)
        _, err = end_of(process)
    assert process.returncode == 128 + number
    assert ("separatrix: interrupted" in err, "Traceback" in err) == (number == signal.SIGINT, False)
    assert not list(tmp_path.glob("half-*"))


def test_a_second_signal_ends_the_process_and_leaves_nothing_behind(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal\n"
        "from separatrix import cli\n"
        "from separatrix.core.interrupts import temporary_folder\n"
        "def run(words):\n"
        "    with temporary_folder('half-', pathlib.Path('.').resolve()):\n"
        "        try:\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "            signal.pause()\n"
        "        finally:\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "            signal.pause()\n"
        "import separatrix.cli.application as application\n"
        "application.run = run\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (143, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_within_the_handler_of_another_is_handled(tmp_path: Path) -> None:
    """Ctrl-C reaches a command twice: from the terminal, and from the parent that passes it on."""
    program = (
        "import signal, sys\n"
        "from separatrix.core.interrupts import stop_handler\n"
        "handled = []\n"
        "signal.signal(signal.SIGTERM, stop_handler(lambda *_: handled.append(1)))\n"
        "def trace(frame, event, argument):\n"
        "    if event == 'line':  # of the handler, and of all that it calls\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "    return trace\n"
        "sys.settrace(trace)\n"
        "signal.raise_signal(signal.SIGTERM)\n"
        "sys.settrace(None)\n"
        "print(len(handled) > 3)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == (b"True\n", b"")


def test_an_interrupt_while_a_command_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = tmp_path / "pipe"
    with started("check", str(pipe)) as process, pipe.open("wb"):  # which waits until somebody reads
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert end_of(process)[1] == b"separatrix: interrupted\n"
    assert process.returncode == 130


@pytest.mark.parametrize("number", EACH_SIGNAL)
def test_a_program_that_is_ended_while_it_writes_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    program = (
        "import os\n"
        "from separatrix.cli import main\n"
        "from separatrix.core.files.writing import Draft\n"
        f"Draft.finish = lambda self: os.kill(os.getpid(), {int(number)})\n"
        "main()\n"
    )
    words = ["verdict", "plain", "softmax", "n=9", "m=3", "--certificate", "proof.json"]
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    said = b"separatrix: interrupted\n" if number == signal.SIGINT else b""
    assert (done.returncode, done.stderr) == (128 + number, said)
    assert list(tmp_path.iterdir()) == []
