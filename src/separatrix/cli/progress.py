"""Saying on stderr what a long command does, about how long it takes, and how far it is.

Somebody at a terminal sees a line that moves; else a plain line is printed now and then. With --json nothing
is said. What is answered, or refused, within a second is not announced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from threading import Lock, Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

SOON = 1.0
"""Seconds after which a command that still runs says what it does."""
QUIET = 10.0
"""Seconds between plain lines that say how far it is."""


class Announcement:
    """What a command does and about how long it takes: said once, when it is clear that it takes long."""

    def __init__(self, command: str, what: str, quiet: bool) -> None:
        self.command, self.what, self.quiet = command, what, quiet
        self.started = time.monotonic()
        self._said, self._lock = False, Lock()

    @cached_property
    def console(self) -> Console:
        """Where it is said: made when it is needed, for short commands never say anything."""
        return on_stderr(self.quiet)

    def say(self) -> None:
        """Say it, if it has not been said."""
        with self._lock:
            if not self._said:
                self._said = True
                self.line(self.what)

    def line(self, what: str) -> None:
        """Print a line of this command's."""
        self.console.print(f"{self.command}: {what}", markup=False, highlight=False, soft_wrap=True)


_current: Announcement | None = None


@contextmanager
def announced(command: str, what: str, quiet: bool) -> Iterator[None]:
    """Say what a command does as soon as it works, or has taken a second to get there."""
    global _current
    before, _current = _current, Announcement(command, what, quiet)
    timer = Timer(SOON, _current.say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _current = before


def on_stderr(quiet: bool = False) -> Console:
    """Standard error, for progress."""
    from rich.console import Console

    return Console(stderr=True, quiet=quiet, emoji=False)  # "mine:loop:" is no emoji


def say_now() -> None:
    """Say what the command does, if that has not been said: work begins."""
    if _current is not None:
        _current.say()


def say_line(what: str) -> None:
    """Print a line of the command's that stays."""
    if _current is not None:
        _current.say()
        _current.line(what)


@contextmanager
def working(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what is being done."""
    from rich.markup import escape

    told = _plainly(quiet)
    to = on_stderr(quiet) if _current is None else _current.console
    if not to.is_terminal:
        yield told
        return
    with to.status("starting") as status:

        def tell(what: str) -> None:
            say_now()
            status.update(escape(what))

        yield tell


@contextmanager
def drawing(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """As `working`, for draws: how many of them are done and how long the rest may take, after a second."""
    begun = before = time.monotonic()
    last, tell = 0, None
    with ExitStack() as opened:

        def told(done: int, most: int) -> None:
            nonlocal begun, before, last, tell
            now = time.monotonic()
            if done <= last:  # those of another mechanism
                begun = before
            last, before = done, now
            if tell is None and now - begun >= SOON:
                tell = opened.enter_context(working(quiet))
            if tell is not None:
                tell(f"{done:,} of {most:,} draws{_left(begun, done, most)}")

        yield told


@contextmanager
def counting(quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr that says how far it is, how long it may take, and what is being done."""
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    told = _plainly(quiet)
    to = on_stderr(quiet) if _current is None else _current.console
    if not to.is_terminal:
        begun = time.monotonic()
        yield lambda done, total, what: told(f"{done:,} of {total:,}{_left(begun, done, total)}, {what}")
        return
    columns = (BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=to, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def tell(done: int, total: int, what: str) -> None:
            say_now()
            bar.update(task, completed=done, total=total, description=escape(what))

        yield tell


def _left(begun: float, done: int, total: int) -> str:
    """About how long the rest takes if it goes on as it did; empty while that is anybody's guess."""
    gone = time.monotonic() - begun
    if not 0 < done < total or gone < SOON:
        return ""
    return f", about {_spelled(gone * (total - done) / done)} left"


def _spelled(seconds: float) -> str:
    """Minutes and seconds, after an hour hours as well.

    >>> _spelled(83.4), _spelled(7384)
    ('1:23', '2:03:04')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _plainly(quiet: bool) -> Callable[[str], None]:
    """Print a plain line with the time it has taken, now and then."""
    started = last = time.monotonic() if _current is None else _current.started
    name, to = ("separatrix", on_stderr(quiet)) if _current is None else (_current.command, _current.console)

    def tell(what: str) -> None:
        nonlocal last
        say_now()
        now = time.monotonic()
        if now - last >= QUIET:
            last = now
            line = f"{name}: {_spelled(now - started)} {what}"
            to.print(line, markup=False, highlight=False, soft_wrap=True)

    return tell
