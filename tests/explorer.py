"""An explorer for tests: `separatrix explore` in a process of its own, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote


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
    """A running one."""

    process: subprocess.Popen[str]
    port: int

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}"

    def send(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Reply:
        """One request with these headers, `sec_fetch_site` for sec-fetch-site."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
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


def start(*words: str, cwd: Path | None = None, before: str = "") -> subprocess.Popen[str]:
    """`separatrix explore`, without a browser, on any free port; `before` is code that runs first."""
    program = f"{before}\nfrom separatrix.cli import main; main()"
    command = [sys.executable, "-P", "-c", program, "explore", "--no-browser", "--port", "0", *words]
    return subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )


@contextmanager
def running(*words: str, cwd: Path | None = None, before: str = "") -> Iterator[Explorer]:
    """An explorer that is ended as by Ctrl-C."""
    process = start(*words, cwd=cwd, before=before)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, (line, process.stderr.read() if process.stderr else "")
        yield Explorer(process, int(line.strip().rstrip("/").rpartition(":")[2]))
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
