"""Explorers for tests, and requests to them: `running` starts `separatrix explore` in a process of its own,
`serving` the same application in a thread of this process, which is ready sooner.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

HEED_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""Under nohup pytest ignores SIGINT, and so would the processes that it starts."""


PATIENCE = 120
"""Seconds until an explorer counts as hanging."""


@dataclass(frozen=True)
class Reply:
    """What the server sent back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The document in it."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Explorer:
    """One that answers at a port of this machine."""

    port: int

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}"

    def send(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Reply:
        """One request with these headers, `sec_fetch_site` for sec-fetch-site."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, quote(path, safe="/?&=:,-+%._~"), body, named)
        found = line.getresponse()
        read = Reply(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
        line.close()
        return read

    def get(self, path: str, **headers: str) -> Any:
        """The document at a path below /api/v1."""
        reply = self.send(f"/api/v1{path}", **headers)
        assert reply.status == 200, reply.body
        return reply.json()

    def refusal(self, path: str) -> Any:
        """What is said of a request that is refused."""
        reply = self.send(f"/api/v1{path}")
        assert reply.status == 400, (reply.status, reply.body)
        return reply.json()


@dataclass(frozen=True)
class ExplorerProcess(Explorer):
    """One that is a process of its own."""

    process: subprocess.Popen[str]

    def workers(self) -> list[int]:
        """Wait until its four workers run; they are below the server that they are forked from."""
        for _ in range(600):
            workers = [each for child in children(self.process.pid) for each in children(child)]
            if len(workers) >= 4:
                return workers
            time.sleep(0.1)
        raise AssertionError("the explorer has no processes")

    def wait_until_computing(self, count: int = 2) -> None:
        """Wait until so many workers have used a tenth of a second of processor time from now on."""
        before = {worker: processor_seconds(worker) for worker in self.workers()}
        for _ in range(600):
            used = [processor_seconds(worker) - since for worker, since in before.items()]
            if sum(each > 0.1 for each in used) >= count:
                return
            time.sleep(0.1)
        raise AssertionError("the explorer computes nothing")


def children(of: int) -> list[int]:
    """Processes, not ended, whose parent is this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parent) == of and state != "Z":
            found.append(int(stat.parent.name))
    return found


def processor_seconds(process: int) -> float:
    """Seconds that a process has computed, in all."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(*words: str, cwd: Path | None = None, before: str = "") -> subprocess.Popen[str]:
    """`separatrix explore`, without a browser, on any free port; `before` is code that runs first."""
    program = f"{HEED_INTERRUPTS}\n{before}\nfrom separatrix.cli import main; main()"
    command = [sys.executable, "-P", "-c", program, "explore", "--no-browser", "--port", "0", *words]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def running(*words: str, cwd: Path | None = None, before: str = "") -> Iterator[ExplorerProcess]:
    """An explorer that is ended as by Ctrl-C."""
    process = start(*words, cwd=cwd, before=before)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, (line, process.stderr.read() if process.stderr else "")
        yield ExplorerProcess(int(line.strip().rstrip("/").rpartition(":")[2]), process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@contextmanager
def serving(store: str) -> Iterator[Explorer]:
    """An explorer of a store, in this process; its workers are forked from a server that several share."""
    from separatrix.core.secrets import Secret
    from separatrix.core.startup import process_context
    from separatrix.web.app import make_app
    from separatrix.web.quiet_server import QuietServer
    from separatrix.web.settings import Settings
    from separatrix.web.workers import PRELOADED

    process_context(PRELOADED)
    app = make_app(Settings(Secret(store)))
    server = QuietServer(app, lambda: None, lambda: app.state.dispatcher.end())
    with socket.create_server(("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([bound])))
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the explorer did not start"
                time.sleep(0.01)
            yield Explorer(bound.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
