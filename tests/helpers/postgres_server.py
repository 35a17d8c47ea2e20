"""A PostgreSQL server for tests, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

PASSWORD = "s3cret-Word"


def program(name: str) -> str | None:
    """Where a program of PostgreSQL is; Debian keeps most of them off the PATH."""
    newest = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: int(p.parts[4]))
    return shutil.which(name) or (str(newest[-1]) if newest else None)


def account() -> dict[str, Any]:
    """Whom the server runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return {}
    names = {each.pw_name for each in pwd.getpwall()}
    who = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


class Server:
    """Listens on a free port of this machine; the user is `sx`, with a password."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.account = folder, folder / "data", account()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        secret = folder / "password"
        secret.write_text(PASSWORD)
        for each in (folder, secret) if self.account else ():
            os.chown(each, self.account["user"], self.account["group"])
        self._call("initdb", "-D", self.data, "-U", "sx", "-A", "scram-sha-256", f"--pwfile={secret}", "-N")

    def _call(self, name: str, *words: object) -> None:
        found = program(name)
        assert found is not None
        log = self.folder / "log"
        command = [found, *map(str, words)]
        with subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **self.account
        ) as done:
            said = done.communicate()[0] if name != "pg_ctl" else ""
            code = done.wait()
        assert code == 0, said + (log.read_text() if log.exists() else "")

    def start(self, fsync: bool = False) -> None:
        """Start it, and wait until it answers."""
        durable = "on" if fsync else "off"
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync={durable} -k '{self.folder}'"
        self._call("pg_ctl", "start", "-w", "-D", self.data, "-l", self.folder / "log", "-o", settings)

    def stop(self) -> None:
        """Stop it at once, as a crash would."""
        self._call("pg_ctl", "stop", "-D", self.data, "-m", "immediate")

    def send(self, number: signal.Signals) -> None:
        """A signal to all its processes: SIGSTOP freezes it."""
        first = (self.data / "postmaster.pid").read_text().split()[0]
        for process in (first, *Path(f"/proc/{first}/task/{first}/children").read_text().split()):
            with suppress(ProcessLookupError):
                os.kill(int(process), number)

    def schema(self, name: str) -> str:
        """An empty place: a schema of its own, which is made sooner than a database."""
        with psycopg.connect(self.url().replace("+psycopg", "")) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url()}?options=-csearch_path%3D{name}"

    def url(self, database: str = "postgres", user: str = "sx", password: str = PASSWORD) -> str:
        """The store in one of its databases."""
        return f"postgresql+psycopg://{user}:{password}@127.0.0.1:{self.port}/{database}"


@contextmanager
def running() -> Iterator[Server]:
    """A server in a folder that its user may enter, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    made = Server(folder)
    made.start()
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder)
