"""The errors a user sees: one line, in the user's words, saying what to do."""

from separatrix.secrets import without_passwords

LONGEST_WORD, LONGEST_LINE = 200, 2000


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

    >>> refused = EngineRefusal("window:size=8 does not take counts", ("dense",))
    >>> str(refused), refused.instead
    ('window:size=8 does not take counts; engine dense would do', ('dense',))
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
