"""Connections that are opened and not used: the explorer answers others, stays quiet, and recovers."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from explorer import PATIENCE, Explorer, ExplorerProcess, processor_seconds, running
from separatrix.web import connections

FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))"
HURRY = "from separatrix.web import connections; connections.HEADER_SECONDS = 1.0"
ENDLESS = "/api/v1/boundary/spike/elu?a1=0.5:1.5&--over=n=1e3:1e9:1000:log&--draws=10000"


@contextmanager
def half_open(found: Explorer, count: int) -> Iterator[list[socket.socket]]:
    """Connections of which every second one has sent half a header."""
    with ExitStack() as kept:
        lines = []
        for number in range(count):
            line = socket.create_connection(("127.0.0.1", found.port), timeout=PATIENCE)
            kept.callback(line.close)
            if number % 2:
                line.sendall(b"GET /api/v1/about HTTP/1.1\r\nHos")
            lines.append(line)
        yield lines


def descriptors(found: ExplorerProcess) -> int:
    return len(list(Path(f"/proc/{found.process.pid}/fd").iterdir()))


@pytest.mark.exhaustive
def test_more_connections_than_files_are_survived_quietly(tmp_path: Path) -> None:
    with running(cwd=tmp_path, before=FEW_FILES) as found:
        with half_open(found, 260):
            assert found.send("/api/v1/about").status == 200
            assert found.get("/verdict/spike/softmax?n=1e5")["engine"] == "certified"
            used = processor_seconds(found.process.pid)
            time.sleep(1)
            assert processor_seconds(found.process.pid) - used < 0.5
            assert descriptors(found) < 200
        assert found.send("/api/v1/about").status == 200
        found.process.send_signal(signal.SIGINT)
        _, err = found.process.communicate(timeout=PATIENCE)
        assert (found.process.returncode, err) == (0, "")


@pytest.mark.exhaustive
def test_a_header_that_does_not_end_closes_the_connection(tmp_path: Path) -> None:
    with running(cwd=tmp_path, before=HURRY) as found:
        with socket.create_connection(("127.0.0.1", found.port), timeout=PATIENCE) as line:
            line.sendall(b"GET /api/v1/about HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert line.recv(100_000).startswith(b"HTTP/1.1 200")
            for _ in range(300):  # the rest of a second request, one byte at a time
                try:
                    line.sendall(b"G")
                    line.settimeout(0.2)
                    if line.recv(1000) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            else:
                raise AssertionError("every byte starts the limit again")
        assert found.send("/api/v1/about").status == 200


@pytest.mark.exhaustive
def test_where_all_connections_are_being_answered_a_new_one_gets_503(tmp_path: Path) -> None:
    limited = "from separatrix.web import connections; connections.max_connections = lambda: 3"
    with running(cwd=tmp_path, before=limited) as found, ExitStack() as kept:
        lines = [socket.create_connection(("127.0.0.1", found.port), timeout=PATIENCE) for _ in range(3)]
        for number, line in enumerate(lines):
            kept.callback(line.close)
            line.sendall(
                f"GET {ENDLESS}&--seed={number} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                "Accept: application/x-ndjson\r\n\r\n".encode()
            )
            assert line.recv(1000).startswith(b"HTTP/1.1 200")
        reply = found.send("/api/v1/about")
        assert reply.status == 503
        assert "too many connections" in reply.json()["error"]
        lines[0].close()
        for _ in range(100):
            if found.send("/api/v1/about").status == 200:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("it does not recover")


def test_the_limit_leaves_descriptors_for_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    for allowed, least, most in ((200, 60, 120), (1024, 800, 944), (10**6, 1000, 1000), (20, 1, 1)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, allowed=allowed: (allowed, allowed))
        assert least <= connections.max_connections() <= most


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("/verdict/spike/softmax?n=-5&--dtype=float16", "n=-5"),
        ("/verdict/spike/softmax?n=abc&--dtype=float16", "n=abc"),
        ("/verdict/spike/softmax?n=1e4&--dtype=float16&--delta=7", "delta=7"),
        ("/boundary/spike/elu?a1=0.5:1.5&--over=n=x:1e9:5", "x"),
        ("/boundary/spike/elu?a1=0.5:1.5&--over=n=1e3:1e9:5&--at=3", "at=3"),
        ("/files/map/spike/elu?a1=0.5:1.5:5&n=-4:1e4:5", "n="),
        ("/files/map/spike/elu?a1=0.5:1.5:5&n=1e3:1e4:5&--of=nothing", "nothing"),
        ("/assess/softmax?--width=0", "--width=0"),
    ],
)
def test_wrong_parameters_are_refused_while_all_slow_processes_are_busy(
    busy: Explorer, query: str, complaint: str
) -> None:
    reply = busy.send(f"/api/v1{query}")  # which waits no longer than the slow processes compute
    assert reply.status == 400, reply.body
    assert complaint in reply.json()["error"]


@pytest.mark.exhaustive
def test_wrong_numbers_of_a_kind_known_to_be_slow_are_refused_at_once(busy: Explorer) -> None:
    """The explorer remembers what was slow, but for its numbers; that must not skip their check."""
    for n, status in (("4000", None), ("-4000", 400)):
        line = socket.create_connection(("127.0.0.1", busy.port), timeout=PATIENCE)
        path = f"/api/v1/verdict/spike/elu?n={n}&m=5&--engine=dense&--draws=100000"
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        line.settimeout(2 if status is None else PATIENCE)
        try:
            head = line.recv(1000)
        except TimeoutError:
            head = b""
        line.close()
        if status is not None:
            assert head.startswith(b"HTTP/1.1 400"), head


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """An explorer whose slow processes, and a queue before them, have work for minutes."""
    with running(cwd=tmp_path_factory.mktemp("busy")) as found, ExitStack() as kept:
        for number in range(6):
            line = socket.create_connection(("127.0.0.1", found.port), timeout=PATIENCE)
            kept.callback(line.close)
            line.sendall(f"GET {ENDLESS}&--seed={number} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        found.wait_until_computing()
        yield found


@pytest.mark.exhaustive
def test_a_process_that_dies_over_an_answer_is_503(tmp_path: Path) -> None:
    with running(cwd=tmp_path) as found:
        found.workers()
        with socket.create_connection(("127.0.0.1", found.port), timeout=PATIENCE) as line:
            line.sendall(f"GET {ENDLESS} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            for _ in range(10):  # a process that had not begun is replaced, and the request repeated
                if select.select([line], [], [], 4)[0]:
                    break
                for process in found.workers():
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
            answer = b"".join(iter(lambda: line.recv(100_000), b""))  # headers and body may come apart
        assert answer.startswith(b"HTTP/1.1 503"), answer
        assert b"died" in answer
