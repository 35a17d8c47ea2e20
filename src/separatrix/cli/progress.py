"""Progress of long commands on stderr: what is computed, how far it is, and the estimated remaining time.

A terminal shows a live line; otherwise a plain line is printed every few seconds. With --json nothing is
printed. Commands that finish or fail within a second print nothing.
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

ANNOUNCE_AFTER = 1.0
"""Seconds after which a running command announces what it does."""
PLAIN_INTERVAL = 10.0
"""Seconds between plain progress lines."""
MINUTE, HOUR, DAY = 60, 3600, 86400


class Announcement:
    """A line that says what a command does and about how long it takes, printed at most once."""

    def __init__(self, command: str, text: str, quiet: bool) -> None:
        self.command, self.quiet = command, quiet
        self.start = time.monotonic()
        self._text, self._lock = text, Lock()

    @cached_property
    def console(self) -> Console:
        """The console on stderr; created on first use, because short commands never need it."""
        return on_stderr(self.quiet)

    def say(self) -> None:
        """Print the announcement if it has not been printed."""
        with self._lock:  # the timer of `announced` runs in a thread of its own
            text, self._text = self._text, ""
            if text:
                self.line(text)

    def line(self, text: str) -> None:
        """Print a line prefixed with the name of the command."""
        self.console.print(f"{self.command}: {text}", markup=False, highlight=False, soft_wrap=True)


_current: Announcement | None = None


@contextmanager
def announced(command: str, text: str, quiet: bool) -> Iterator[None]:
    """Announce what a command does when its work starts, or after one second."""
    global _current
    before, _current = _current, Announcement(command, text, quiet)
    timer = Timer(ANNOUNCE_AFTER, _current.say)
    timer.daemon = True  # an exception must not leave the process waiting for the timer
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _current = before


def on_stderr(quiet: bool = False) -> Console:
    """Return a console for stderr."""
    from rich.console import Console

    return Console(stderr=True, quiet=quiet, emoji=False)  # otherwise "mine:loop:" would be read as an emoji


def _announcement(quiet: bool) -> Announcement:
    """Return the announcement of the current command; an empty one if it has none."""
    return Announcement("separatrix", "", quiet) if _current is None else _current


def say_line(text: str) -> None:
    """Print a permanent line of the current command."""
    if _current is not None:
        _current.say()
        _current.line(text)


@contextmanager
def working(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the current step on stderr; yield a function that updates it."""
    from rich.markup import escape

    announcement = _announcement(quiet)
    if not announcement.console.is_terminal:
        yield _plain_reporter(announcement)
        return
    with announcement.console.status("starting") as status:

        def tell(text: str) -> None:
            announcement.say()
            status.update(escape(text))

        yield tell


@contextmanager
def drawing(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show the number of finished draws and the remaining time, once drawing has taken a second."""
    start = last_call = time.monotonic()
    last_count, report = 0, None
    with ExitStack() as stack:

        def report_draws(count: int, total: int) -> None:
            nonlocal start, last_call, last_count, report
            now = time.monotonic()
            if count <= last_count:  # the draws of the next mechanism begin
                start = last_call
            last_count, last_call = count, now
            # Entered late, since most draws take less than a second and should print nothing.
            if report is None and now - start >= ANNOUNCE_AFTER:
                report = stack.enter_context(working(quiet))
            if report is not None:
                report(f"{count:,} of {total:,} draws{_remaining_time(start, count, total)}")

        yield report_draws


@contextmanager
def counting(quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar with the remaining time and the current step; yield a function that updates it."""
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    announcement = _announcement(quiet)
    if not announcement.console.is_terminal:
        start, print_line = time.monotonic(), _plain_reporter(announcement)
        yield lambda n, total, text: print_line(f"{n:,} of {total:,}{_remaining_time(start, n, total)}, {text}")
        return
    columns = (BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=announcement.console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def tell(count: int, total: int, text: str) -> None:
            announcement.say()
            bar.update(task, completed=count, total=total, description=escape(text))

        yield tell


def _remaining_time(start: float, count: int, total: int) -> str:
    """Estimate the remaining time from the speed so far; empty in the first second."""
    duration = time.monotonic() - start
    if not 0 < count < total or duration < ANNOUNCE_AFTER:
        return ""
    return f", about {_format_duration(duration * (total - count) / count)} left"


def spell_time(seconds: float) -> str:
    """Return an estimated time in a rounded form with a suitable unit.

    >>> spell_time(5400), spell_time(42), spell_time(0.2)
    ('1.5 h', '42 s', '1 s')
    """
    if seconds > 1000 * DAY:
        return "more than 1000 days"
    for size, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= 1.5 * size or (size == HOUR and seconds >= size):
            return f"{seconds / size:.2g} {name}"
    return f"{max(1, round(seconds))} s"


def _format_duration(seconds: float) -> str:
    """Format a duration as minutes and seconds, with hours from one hour on.

    >>> _format_duration(83.4), _format_duration(7384)
    ('1:23', '2:03:04')
    """
    minutes, remaining_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{remaining_seconds:02d}" if hours else f"{minutes}:{remaining_seconds:02d}"


def _plain_reporter(announcement: Announcement) -> Callable[[str], None]:
    """Return a function that prints plain lines with the elapsed time, at most one per PLAIN_INTERVAL."""
    last = announcement.start

    def tell(text: str) -> None:
        nonlocal last
        announcement.say()
        now = time.monotonic()
        if now - last >= PLAIN_INTERVAL:
            last = now
            announcement.line(f"{_format_duration(now - announcement.start)} {text}")

    return tell
