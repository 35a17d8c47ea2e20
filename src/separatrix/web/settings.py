"""What an explorer was started with."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.parameters import UsageError, require_known, split_mechanisms
from separatrix.core.secrets import Secret


@dataclass(frozen=True)
class Settings:
    """What the page may show besides what is built in."""

    store: Secret | None = None
    """The address of a store whose sweeps are shown."""
    mechanisms: tuple[str, ...] = ()
    """One's own, as they were named on the command line; a page can never name code."""

    def admitted(self, mechanisms: str) -> str:
        """The mechanisms a request names, if each is registered or was named on the command line.

        >>> Settings(mechanisms=("mine:attend",)).admitted("softmax,mine:attend")
        'softmax,mine:attend'
        """
        from separatrix.mechanisms.load import MECHANISMS, installed

        chosen = split_mechanisms(mechanisms)
        if not chosen:
            raise UsageError("name a mechanism, for example softmax")
        for each in chosen:
            name, _, words = each.partition(":")
            if each in self.mechanisms or (name in MECHANISMS and ":" not in words):
                continue
            if name in installed() and ":" not in words and (not words or "=" in words):
                continue
            if words and "=" not in words.partition(":")[0]:
                raise UsageError(
                    f"{each} is not registered; own mechanisms are named where the page is started: "
                    f"separatrix explore --mechanism {each}"
                )
            require_known("mechanism", name, [*MECHANISMS, *installed()])
            raise UsageError(f"{each} names more than a mechanism and its parameters")
        return mechanisms
