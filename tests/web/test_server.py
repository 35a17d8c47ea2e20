"""Starting and ending the explorer."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_server import run
from explorer import PATIENCE, Explorer, ExplorerProcess, children, running, start
from separatrix.cli import explore
from separatrix.web import server
from separatrix.web.dispatch import LINES
from separatrix.web.workers import JSON


def test_the_port_in_the_help_is_the_servers() -> None:
    assert explore.PORT == server.PORT


def test_it_says_where_it_is_and_ends_quietly(tmp_path: Path) -> None:
    with running(cwd=tmp_path) as found:
        assert found.send("/").body.startswith(b"<!doctype html>")
        found.process.send_signal(signal.SIGINT)
        _, err = found.process.communicate(timeout=PATIENCE)
        assert (found.process.returncode, err) == (0, "")
    assert list(tmp_path.iterdir()) == []


CURVE = "/api/v1/boundary/spike/elu?a1=0.5:1.5&--over=n=1e3:1e9:1000:log&--draws=10000"


@contextmanager
def asked(found: ExplorerProcess, path: str, accept: str, times: int) -> Iterator[list[socket.socket]]:
    """Requests that nobody reads the answers of."""
    lines = [socket.create_connection(("127.0.0.1", found.port), timeout=PATIENCE) for _ in range(times)]
    for number, line in enumerate(lines):
        line.sendall(f"GET {path}&--seed={number} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n\r\n".encode())
    found.wait_until_computing()
    try:
        yield lines
    finally:
        for line in lines:
            line.close()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("ending", "accept"),
    [((signal.SIGINT,), JSON), ((signal.SIGTERM,), LINES), ((signal.SIGINT, signal.SIGINT), LINES)],
)
def test_it_ends_quietly_and_soon_whatever_it_computes(
    tmp_path: Path, ending: tuple[signal.Signals, ...], accept: str
) -> None:
    with running(cwd=tmp_path) as found, asked(found, CURVE, accept, 4) as lines:
        for each in ending:
            found.process.send_signal(each)
            time.sleep(0.05)  # signals of one kind that come together are one
        _, err = found.process.communicate(timeout=PATIENCE)  # what it computes would take minutes
        assert err == ""
        assert b"the explorer was ended" in b"".join(iter(lambda: lines[0].recv(100_000), b""))


@pytest.mark.exhaustive
def test_what_has_a_closed_form_is_answered_whatever_else_is_computed(tmp_path: Path) -> None:
    with running(cwd=tmp_path) as found:
        formats = found.send("/api/v1/verdict/spike/softmax?n=1e4&--dtype=float16&--draws=100").json()
        assert formats["engine"] not in ("certified", "closed")
        with asked(found, CURVE, JSON, 62):
            for n in ("1e5", "1e6", "1e7"):
                assert found.get(f"/verdict/spike/softmax?n={n}")["engine"] == "certified"


@pytest.mark.exhaustive
def test_its_processes_end_with_it(tmp_path: Path) -> None:
    with running(cwd=tmp_path) as found:
        below = [*children(found.process.pid), *found.workers()]
        found.process.kill()
        found.process.communicate(timeout=PATIENCE)
        for _ in range(100):
            left = [each for each in below if Path(f"/proc/{each}/stat").exists() and not _is_dead(each)]
            if not left:
                break
            signal.sigtimedwait([], 0.1)
        assert left == []


def _is_dead(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        found = run("explore", "--no-browser", "--port", port)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert f"port {port}" in found.stderr
    assert "--port 0" in found.stderr


@pytest.mark.parametrize("words", [["--host", "0.0.0.0"], ["--host", "192.168.7.7"]])
def test_other_machines_are_let_in_only_when_asked_in_so_many_words(words: list[str]) -> None:
    found = run("explore", "--no-browser", "--port", "0", *words)
    assert found.returncode == 2
    assert "--allow-others" in found.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "70000"], "out of range"),
        (["--mechanism", "nowhere:attend"], "no module nowhere"),
        (["--mechanism", "sofmax"], "did you mean softmax"),
        (["--host", "nonsense host", "--allow-others"], "--host nonsense host is no address of this machine"),
        (["--store", "mysql://me:secret@db/x"], "stores are in SQLite or PostgreSQL"),
        (["--store", "sqlite:////"], "is a folder; name a file"),
    ],
)
def test_bad_words_are_told_in_one_line(words: list[str], said: str) -> None:
    found = run("explore", "--no-browser", *words)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert said in found.stderr


@pytest.mark.exhaustive
def test_a_store_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with running("--store", "sqlite:///later.db", cwd=tmp_path) as found:
        assert found.process.stdout is not None
        said = found.process.stdout.readline()
        assert said == "There is no store later.db yet; the page shows it once there is one.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.exhaustive
def test_a_folder_of_traps_is_not_imported(tmp_path: Path) -> None:
    for name in ("torch", "queue", "fastapi", "uvicorn", "numpy", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('trapped')\n")
    with running(cwd=tmp_path) as found:
        assert found.get("/verdict/spike/softmax")["verdict"] == "distinguishes"


@pytest.mark.exhaustive
def test_it_can_be_ended_before_it_answers(tmp_path: Path) -> None:
    process = start(cwd=tmp_path)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0


def test_all_views_are_one_page(explorer: Explorer) -> None:
    page = explorer.send("/").body
    for path in ("/map/spike/softmax,linear?a1=0.5:1.5:64&n=1e3:1e6:64:log", "/atlas", "/assess/power:beta=4"):
        assert explorer.send(path).body == page
    assert explorer.send("/elsewhere").status == 404


def test_who_goes_astray_in_a_browser_is_shown_the_way(explorer: Explorer) -> None:
    astray = explorer.send("/nowhere", accept="text/html,*/*")
    assert (astray.status, astray.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert b'There is nothing at this address. <a href="/">' in astray.body
    for path, accept in (("/api/v1/nowhere", "text/html"), ("/nowhere", "*/*")):
        reply = explorer.send(path, accept=accept)
        assert reply.status == 404
        assert reply.json()["error"] == "there is nothing at this address"
