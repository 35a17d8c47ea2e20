"""Errors for users: one line with the problem, its cause and the remedy."""

import linecache
import re
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from separatrix.core.secrets import without_passwords

MAX_WORD, MAX_LINE, MAX_CODE = 200, 2000, 72
"""The maximum numbers of characters of a word, a message and a quoted line of code."""
SEPARATRIX = (str(Path(__file__).resolve().parents[1]),)
LIBRARY_FOLDERS = (*SEPARATRIX, str(Path(sysconfig.get_path("stdlib")).resolve()))
"""Folders whose code is never the user's own: separatrix and the standard library."""
PACKAGES = ("site-packages", "dist-packages")
"""Folders of installed packages, of the system and of the user."""


class SeparatrixError(Exception):
    """A request that separatrix refuses, with a message for the user.

    Arguments of the library are in backquotes, as `over`; the command line shows them as options, --over.
    """

    @property
    def lines(self) -> list[str]:
        """The message, one line for each problem."""
        return [on_one_line(str(self))]


class UsageError(SeparatrixError):
    """An invalid request; the command line exits with code 2."""


class EngineRefusal(SeparatrixError):
    """An engine does not apply here; with the reason, and engines that apply, the best first.

    >>> refusal = EngineRefusal("window:size=8 does not accept counts", ("dense",))
    >>> str(refusal), refusal.instead
    ('window:size=8 does not accept counts; engine dense would do', ('dense',))
    """

    def __init__(self, reason: str, instead: tuple[str, ...] = ()) -> None:
        super().__init__(reason, instead)
        self.reason, self.instead = reason, instead

    def __str__(self) -> str:
        return f"{self.reason}; engine {' or '.join(self.instead)} would do" if self.instead else self.reason


def on_one_line(message: str) -> str:
    """Return a message as one line for a terminal: without passwords, long words shortened, others escaped.

    >>> len(on_one_line("n=" + 5000 * "9" + " is too large"))
    174
    """
    words = [_truncate(word, MAX_WORD) for word in without_passwords(message).split()]
    line = _truncate(" ".join(words), MAX_LINE)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _truncate(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest * 3 // 5]}…{text[-(longest // 5) :]}"


def one_line(error: BaseException, limit: int = 300) -> str:
    """Return the message of an error on one line, cut to `limit` characters."""
    text = " ".join(str(error).split()) or "no message"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def user_lines(error: Exception) -> list[str]:
    """Return the lines that describe an error to a user, with options as they are typed; never a traceback.

    >>> user_lines(EngineRefusal("window:size=8 does not accept counts", ("dense",)))
    ['window:size=8 does not accept counts; use --engine dense']
    """
    if isinstance(error, EngineRefusal) and error.instead:
        return [f"{error.reason}; use --engine {' or '.join(error.instead)}"]
    if isinstance(error, SeparatrixError):
        # Arguments of the library are options here: `cell_timeout` is --cell-timeout.
        return [re.sub(r"`([a-z_]+)`", lambda word: f"--{word[1].replace('_', '-')}", line) for line in error.lines]
    if (call := find_user_call(error)) is not None:
        return [f"{call.name} {describe_failure(error)}"]
    if isinstance(error, RecursionError):
        return ["something in this is nested too deeply"]
    if isinstance(error, MemoryError):
        return ["this needs more memory than there is; ask for less"]
    if isinstance(error, UnicodeEncodeError):
        return [f"{error.object[:100]!r} is not a text: it holds bytes that are no UTF-8"]
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        return [reason if error.filename is None else f"{error.filename}: {reason}"]
    message = f"{type(error).__name__}: {str(error) or 'no more is known'}"
    return [f"{message}. This should not happen: please report the command"]


class UserCall(str):
    """A note on an error that a user's mechanism raised: the call, as text."""

    name: str
    """The mechanism."""
    tokens: int
    """The number of keys."""


class WrongResult(ValueError):
    """A user's mechanism returned a result of the wrong type or shape."""


def annotate_user_error(error: Exception, name: str, description: str, tokens: int) -> None:
    """Add a note to an error that the user's mechanism `name` raised, with a description of the call."""
    # Nested calls: the innermost mechanism raised the error, and it annotates first.
    if find_user_call(error) is None:
        note = UserCall(description)
        note.name, note.tokens = name, tokens
        error.add_note(note)


def find_user_call(error: BaseException) -> UserCall | None:
    """Return the call of a user's mechanism that raised an error; None for other errors."""
    notes = getattr(error, "__notes__", ())
    return next((note for note in notes if isinstance(note, UserCall)), None)


def describe_failure(error: BaseException) -> str:
    """Describe the failure of a mechanism: the error, the line of the user's file, and the call.

    >>> describe_failure(ValueError("too long"))
    'raised ValueError: too long'
    """
    call = find_user_call(error)
    is_wrong_result = isinstance(error, WrongResult)
    # A wrong result is noticed after the call returned, so no line of the user's file raised it.
    line = "" if is_wrong_result else user_source_line(error)
    details = "; ".join(filter(None, (line, call))) if call else ""
    failure = one_line(error) if is_wrong_result else f"raised {type(error).__name__}: {one_line(error)}"
    return f"{failure} ({details})" if details else failure


def describe_failure_briefly(error: BaseException) -> str:
    """Describe the failure of a mechanism briefly: the type of the error and the number of tokens.

    >>> describe_failure_briefly(ValueError("too long"))
    'raised ValueError'
    """
    call = find_user_call(error)
    failure = "gave a wrong result" if isinstance(error, WrongResult) else f"raised {type(error).__name__}"
    return failure if call is None else f"{failure} on {call.tokens:,} token{'s' * (call.tokens != 1)}"


def user_source_line(error: BaseException) -> str:
    """Return the innermost line of the user's code in a traceback: `line 3 of mine.py: return q @ k`."""
    frames = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    user_frames = [frame for frame in frames if not _is_packaged(frame[0]) and not _is_of(frame[0], LIBRARY_FOLDERS)]
    package_frames = [frame for frame in frames if _is_packaged(frame[0]) and not _is_of(frame[0], SEPARATRIX)]
    if not user_frames + package_frames:
        return ""
    # Without a line of the user, the outermost line of a package: the one that the mechanism itself is in.
    path, number = user_frames[-1] if user_frames else package_frames[0]
    code = _truncate(" ".join(linecache.getline(path, number).split()), MAX_CODE)
    return f"line {number} of {Path(path).name}" + (f": {code}" if code else "")


def user_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback of an error without leading frames of separatrix; whole if there are no others."""
    traceback = error.__traceback__
    while traceback is not None and _is_of(traceback.tb_frame.f_code.co_filename, SEPARATRIX):
        traceback = traceback.tb_next
    return traceback or error.__traceback__


def _is_packaged(path: str) -> bool:
    return not {*PACKAGES}.isdisjoint(Path(path).parts)


def _is_of(path: str, folders: tuple[str, ...]) -> bool:
    # "<string>", "<frozen …>": code without a file, which no line of a file can show.
    return path.startswith("<") or str(Path(path).resolve()).startswith(folders)
