"""The settings that an explorer was started with."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.parameters import UsageError, require_known, split_mechanisms
from separatrix.core.secrets import Secret


@dataclass(frozen=True)
class Settings:
    """What the page may show in addition to what is built in."""

    store: Secret | None = None
    """The address of a store whose sweeps are shown."""
    mechanisms: tuple[str, ...] = ()
    """The user's own, as named on the command line."""

    def require_admitted(self, mechanisms: str) -> str:
        """Return the mechanisms of a request; each must be registered or named on the command line.

        Without this check a page could name code: `os:system` is spelled like a user's own mechanism.

        >>> Settings(mechanisms=("mine:attend",)).require_admitted("softmax,mine:attend")
        'softmax,mine:attend'
        """
        from separatrix.mechanisms.load import MECHANISMS, installed

        spellings = split_mechanisms(mechanisms)
        if not spellings:
            raise UsageError("name a mechanism, for example softmax")
        for mechanism in spellings:
            name, _, words = mechanism.partition(":")
            if mechanism in self.mechanisms or (name in MECHANISMS and ":" not in words):
                continue
            # The name of a package's mechanism may be that of a module too; with a word after the colon that
            # is no parameter, it would be read as `module:attribute`.
            if name in installed() and ":" not in words and (not words or "=" in words):
                continue
            if words and "=" not in words.partition(":")[0]:
                raise UsageError(
                    f"{mechanism} is not registered; own mechanisms are named where the page is started: "
                    f"separatrix explore --mechanism {mechanism}"
                )
            require_known("mechanism", name, [*MECHANISMS, *installed()])
            raise UsageError(f"{mechanism} names more than a mechanism and its parameters")
        return mechanisms
