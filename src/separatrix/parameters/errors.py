"""The errors a user sees: one line, in the user's words, saying what to do."""


class SeparatrixError(Exception):
    """Anything separatrix refuses to do, with a message fit to be shown as it is."""

    @property
    def lines(self) -> list[str]:
        """What is shown: one line, unless there is more than one thing wrong."""
        return [" ".join(str(self).split())]


class UsageError(SeparatrixError):
    """The request itself is wrong; the command line answers with exit code 2."""
