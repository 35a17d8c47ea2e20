"""The errors a user sees: one line, in the user's words, saying what to do."""

import linecache
import re
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from separatrix.core.secrets import without_passwords

LONGEST_WORD, LONGEST_LINE = 200, 2000
LONGEST_CODE = 72
OURS = (str(Path(__file__).resolve().parents[1]),)
PYTHONS = (*OURS, str(Path(sysconfig.get_path("stdlib")).resolve()))
"""Where code lies that is never the user's own, but for packages."""
PACKAGES = ("site-packages", "dist-packages")
"""Folders that hold installed packages, those of the system and of the user, too."""


class SeparatrixError(Exception):
    """Anything separatrix refuses to do, with a message fit to be shown as it is.

    An argument is named in backquotes, as `over`; the command line shows it as its option, --over.
    """

    @property
    def lines(self) -> list[str]:
        """What is shown: one line, unless there is more than one thing wrong."""
        return [on_one_line(str(self))]


class UsageError(SeparatrixError):
    """The request itself is wrong; the command line answers with exit code 2."""


class EngineRefusal(SeparatrixError):
    """An engine does not apply here: why, and which engines would do instead, the best first.

    >>> refused = EngineRefusal("window:size=8 does not accept counts", ("dense",))
    >>> str(refused), refused.instead
    ('window:size=8 does not accept counts; engine dense would do', ('dense',))
    """

    def __init__(self, reason: str, instead: tuple[str, ...] = ()) -> None:
        super().__init__(reason, instead)
        self.reason, self.instead = reason, instead

    def __str__(self) -> str:
        return f"{self.reason}; engine {' or '.join(self.instead)} would do" if self.instead else self.reason


def on_one_line(message: str) -> str:
    """A message as one line that a terminal can show: no passwords, long words shortened, odd ones spelled.

    >>> len(on_one_line("n=" + 5000 * "9" + " is too large"))
    174
    """
    words = [_shortened(word, LONGEST_WORD) for word in without_passwords(message).split()]
    return "".join(map(_printable, _shortened(" ".join(words), LONGEST_LINE)))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest * 3 // 5]}…{text[-(longest // 5) :]}"


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def one_line(error: BaseException, limit: int = 300) -> str:
    """The message of an error on one line, cut to `limit` characters."""
    text = " ".join(str(error).split()) or "no message"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def told(error: Exception) -> list[str]:
    """The lines by which a user is told of an error, options as they are typed; never a traceback.

    >>> told(EngineRefusal("window:size=8 does not accept counts", ("dense",)))
    ['window:size=8 does not accept counts; use --engine dense']
    """
    if isinstance(error, EngineRefusal) and error.instead:
        return [f"{error.reason}; use --engine {' or '.join(error.instead)}"]
    if isinstance(error, SeparatrixError):
        return [re.sub(r"`([a-z_]+)`", lambda named: _option(named[1]), line) for line in error.lines]
    if (call := call_of_theirs(error)) is not None:
        return [f"{call.name} {raised(error)}"]
    if isinstance(error, RecursionError):
        return ["something in this is nested too deeply"]
    if isinstance(error, MemoryError):
        return ["this needs more memory than there is; ask for less"]
    if isinstance(error, UnicodeEncodeError):
        return [f"{error.object[:100]!r} is not a text: it holds bytes that are no UTF-8"]
    if isinstance(error, OSError):
        what = (error.strerror or str(error)).lower()
        return [what if error.filename is None else f"{error.filename}: {what}"]
    what = f"{type(error).__name__}: {str(error) or 'no more is known'}"
    return [f"{what}. This should not happen: please report the command"]


def _option(name: str) -> str:
    """How an argument of the library is typed, `cell_timeout` as --cell-timeout."""
    return f"--{name.replace('_', '-')}"


class CallOfTheirs(str):
    """A note on an error that a user's own mechanism raised: what it was called with."""

    name: str
    """The mechanism."""
    tokens: int
    """How many keys there were."""


class WrongResult(ValueError):
    """What a user's own mechanism returned is not what was due."""


def note_theirs(error: Exception, name: str, called: str, tokens: int) -> None:
    """Note on an error that a user's own mechanism `name` raised it, and what that was called with."""
    if call_of_theirs(error) is None:
        note = CallOfTheirs(called)
        note.name, note.tokens = name, tokens
        error.add_note(note)


def call_of_theirs(error: BaseException) -> CallOfTheirs | None:
    """The call of a user's own mechanism that raised an error, if that is whose error it is."""
    notes = getattr(error, "__notes__", ())
    return next((note for note in notes if isinstance(note, CallOfTheirs)), None)


def raised(error: BaseException) -> str:
    """What a mechanism did, in words: it raised an error, in which line of the user's file, called with what.

    >>> raised(ValueError("too long"))
    'raised ValueError: too long'
    """
    call = call_of_theirs(error)
    wrong = isinstance(error, WrongResult)
    where = "; ".join(filter(None, ("" if wrong else line_of_theirs(error), call))) if call else ""
    what = one_line(error) if wrong else f"raised {type(error).__name__}: {one_line(error)}"
    return f"{what} ({where})" if where else what


def raised_in_short(error: BaseException) -> str:
    """What a mechanism did, in a few words: which error it raised, on how many tokens.

    >>> raised_in_short(ValueError("too long"))
    'raised ValueError'
    """
    call = call_of_theirs(error)
    what = "gave a wrong result" if isinstance(error, WrongResult) else f"raised {type(error).__name__}"
    return what if call is None else f"{what} on {call.tokens:,} token{'s' * (call.tokens != 1)}"


def line_of_theirs(error: BaseException) -> str:
    """The innermost line of the user's own that an error came through: `line 3 of mine.py: return q @ k`."""
    frames = [(each.f_code.co_filename, number) for each, number in traceback.walk_tb(error.__traceback__)]
    theirs = [frame for frame in frames if not _is_packaged(frame[0]) and not _is_of(frame[0], PYTHONS)]
    packaged = [frame for frame in frames if _is_packaged(frame[0]) and not _is_of(frame[0], OURS)]
    if not theirs + packaged:
        return ""
    path, number = theirs[-1] if theirs else packaged[0]
    code = _shortened(" ".join(linecache.getline(path, number).split()), LONGEST_CODE)
    return f"line {number} of {Path(path).name}" + (f": {code}" if code else "")


def from_theirs(error: BaseException) -> TracebackType | None:
    """The traceback of an error from the user's own lines on; whole where it came through none."""
    found = error.__traceback__
    while found is not None and _is_of(found.tb_frame.f_code.co_filename, OURS):
        found = found.tb_next
    return found or error.__traceback__


def _is_packaged(path: str) -> bool:
    return not {*PACKAGES}.isdisjoint(Path(path).parts)


def _is_of(path: str, folders: tuple[str, ...]) -> bool:
    return path.startswith("<") or str(Path(path).resolve()).startswith(folders)
