"""The command line. Large packages are imported only when a command needs them."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from separatrix.core.interrupts import STOPPING, exit_code, exit_now, stop_handler, stop_signal, watch_signals


def main() -> None:
    """Run the command; an error becomes one line on stderr and exit code 2, never a traceback."""
    for number in STOPPING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    from separatrix.cli import streams, supervisor

    streams.prepare()
    if supervisor.can_supervise(sys.argv[1:]):
        supervisor.start(sys.argv[1:])
    from separatrix.cli.application import run

    _received.clear()
    watch_signals()  # after `prepare`: it opens files, which must not get the descriptors of closed streams
    try:
        _require_current_folder()
        streams.take_queued_lines()
        code = run(sys.argv[1:])
        sys.stdout.flush()
        for line in streams.take_queued_lines():
            _say(line)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # rich exits this way when the pipe is closed
            streams.exit_by_broken_pipe()
        supervisor.report(code=ended.code if isinstance(ended.code, int) else int(ended.code is not None))
        raise
    except BrokenPipeError:
        streams.exit_by_broken_pipe()
    except KeyboardInterrupt:
        if stop_signal() == signal.SIGINT:
            _say("interrupted")
        code = exit_code()
    except Exception as error:
        code = 2
        from separatrix.core.errors import user_lines

        for line in user_lines(error):
            _say(line)
    try:
        sys.stdout.flush()
    except OSError:
        streams.drop_output()
    supervisor.report(code=code)
    sys.exit(code)


_received: set[int] = set()
"""Signals received so far."""


@stop_handler
def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt the command; a second signal ends the process at once.

    A signal during an import also ends it at once: the module would stay half-imported, and the import system
    swallows some exceptions.
    """
    if number in _received:
        exit_now(number)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            exit_now(number)
        frame = frame.f_back
    _received.add(number)
    raise KeyboardInterrupt


def _require_current_folder() -> None:
    """Reject a deleted current folder, in which some libraries exit without a message."""
    from separatrix.core.errors import UsageError

    try:
        os.stat(os.getcwd())  # noqa: PTH109, PTH116
    except OSError as error:
        reason = "it was deleted" if isinstance(error, FileNotFoundError) else error.strerror
        raise UsageError(
            f"the current folder cannot be used: {reason}; go to another one (cd) and give the command again"
        ) from None


def _say(line: str) -> None:
    from separatrix.core.errors import on_one_line

    with suppress(OSError):
        print(f"separatrix: {on_one_line(line)}", file=sys.stderr, flush=True)
