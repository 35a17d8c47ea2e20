"""`separatrix` in a fork of a process that has imported everything: as isolated as `command.run`, without its
seconds of imports. For tests of what a command answers; tests of how it starts and ends use `command.run`.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

HERE = str(Path(__file__).parent)
PROGRAM = f"import sys; sys.path.append({HERE!r}); import command_server; command_server.serve()"
PRELOADED = (
    *(
        "separatrix.cli.application",
        "separatrix.cli.tables",
        "separatrix.analysis.cards.assessment",
        "separatrix.checker",
    ),
    *("separatrix.analysis.choose", "separatrix.claims", "separatrix.pages.atlas", "separatrix.core.schemas"),
    *("separatrix.analysis.search", "separatrix.sweeps.store.export", "separatrix.sweeps.sweep", "polars"),
)
"""Modules that commands import when they run."""

_turn = threading.Lock()


def run(*words: str, cwd: Path | None = None, columns: str = "80") -> subprocess.CompletedProcess[str]:
    """Run `separatrix` with these words, in a terminal of so many columns."""
    request = {"words": words, "cwd": str(cwd or Path.cwd()), "environment": {**os.environ, "COLUMNS": columns}}
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with _turn:
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        reply = json.loads(server.stdout.readline())
    return subprocess.CompletedProcess(words, reply["code"], reply["out"], reply["err"])


@cache
def _server() -> subprocess.Popen[str]:
    """Start the server of this process; it ends when its standard input does."""
    server = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for pytest, which then ends the server.
    )
    atexit.register(server.communicate)
    return server


def serve() -> None:
    """Answer requests from standard input, each in a fork, until there are no more."""
    from importlib import import_module

    import torch

    torch.set_num_threads(1)  # A fork has none of the threads of its parent.
    for name in PRELOADED:
        import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        with TemporaryFile() as out, TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _become_command(request["words"], request["cwd"], request["environment"])
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                from separatrix.cli import main

                main()  # raises SystemExit, which ends the fork
            _, status = os.waitpid(child, 0)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
        reply = {"code": os.waitstatus_to_exitcode(status), "out": texts[0], "err": texts[1]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def _become_command(words: list[str], cwd: str, environment: dict[str, str]) -> None:
    """Give this fork the words, folder and variables of a command, and no standard input."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 -- the old one holds lines that the server read ahead
    sys.argv = ["separatrix", *words]
