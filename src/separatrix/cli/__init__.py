"""The command line. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from types import FrameType

BY_SIGNAL = 128
"""What a shell adds to the number of a signal for the exit code of whom it ended: 130 for Ctrl-C."""
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals by which others end a program; there is no SIGHUP on Windows."""


def main() -> None:
    """Run what was typed; every error becomes one line on stderr and exit code 2, never a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    from separatrix.cli import streams, supervisor

    streams.prepare()
    if supervisor.can_supervise(sys.argv[1:]):
        supervisor.start(sys.argv[1:])
    from separatrix.cli.application import run

    try:
        streams.kept_lines()
        code = run(sys.argv[1:])
        sys.stdout.flush()
        for line in streams.kept_lines():
            _say(line)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # rich's way to end when nobody reads
            streams.die_of_a_broken_pipe()
        supervisor.report(code=ended.code if isinstance(ended.code, int) else int(ended.code is not None))
        raise
    except BrokenPipeError:
        streams.die_of_a_broken_pipe()
    except KeyboardInterrupt as interrupt:
        number = interrupt.number if isinstance(interrupt, _Ended) else signal.SIGINT
        if number == signal.SIGINT:
            _say("interrupted")
        code = BY_SIGNAL + number
    except Exception as error:
        code = 2
        from separatrix.errors import told

        for line in told(error):
            _say(line)
    try:
        sys.stdout.flush()
    except OSError:
        streams.drop_output()
    supervisor.report(code=code)
    sys.exit(code)


class _Ended(KeyboardInterrupt):
    """Somebody ended the program: what is half done is removed, as for Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Take a signal; in the midst of an import it ends the process at once: half a module is broken."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            _die_of(number)
        frame = frame.f_back
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    signal.signal(number, signal.SIG_DFL)  # a second one waits for nothing
    raise _Ended(number)


def _die_of(number: int) -> None:
    """End the process by the signal, as if nothing had been done about it."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _say(line: str) -> None:
    from separatrix.errors import on_one_line

    with suppress(OSError):
        print(f"separatrix: {on_one_line(line)}", file=sys.stderr, flush=True)
