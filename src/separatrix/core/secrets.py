"""Hiding passwords in text that is shown to users."""

from __future__ import annotations

import re

HIDDEN = "***"
_SETTING = r"(?i:\b(?P<name>(?:ssl)?pass(?!file)\w*|pwd)\s*=\s*)(?:'[^']*'|[^\s&;]*)"
_WORDS = r"\w+=[^\s:@,]*(?:,\w+=[^\s:@,]*)*"
_WEIGHTED = (
    r"(?P<weighted>(?<![\w./:@+-])(?!\S*//)(?!(?i:\S*(?:pass|pwd)))"
    rf"[\w./-]+:[^\W\d][\w.]*(?::{_WORDS})?@[0-9a-f]{{12}}(?![\w/@-]|[.:]\w))"
)
"""A mechanism with the hash of its weights, `mine:Module:seed=0@0123456789ab`. With a port, a database or
anything else after it, it may be an address."""
_SHOWN = re.compile(rf"{_WEIGHTED}|(?P<user>://[^\s/:@]*:).*@|(?P<colon>:)(?!//)\S*@|{_SETTING}", re.DOTALL)
_GIVEN = re.compile(rf"^postgres\w*(?:\+\w+)?:|:.*@|{_SETTING}", re.DOTALL)


class Secret:
    """A text that may contain a password: it is passed on unchanged and never shown."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN


def without_passwords(message: str) -> str:
    """Remove passwords in URLs and database settings from a message.

    >>> without_passwords("postgresql://me:secret@host/results is no plan, nor is password=secret")
    'postgresql://me:***@host/results is no plan, nor is password=***'
    >>> without_passwords("mine:Net:dim=4@0123456789ab is a mechanism, me:secret@0123456789ab/db a store")
    'mine:Net:dim=4@0123456789ab is a mechanism, me:***@0123456789ab/db a store'
    """
    return _SHOWN.sub(_hide, message)


def may_hold_password(text: str) -> bool:
    """Whether a text looks like a server address, a user with a password, or settings with one.

    >>> may_hold_password("me:secret@host"), may_hold_password("results.db")
    (True, False)
    """
    return _GIVEN.search(text) is not None


def _hide(match: re.Match[str]) -> str:
    if match["weighted"]:
        return match[0]
    before = match["user"] or match["colon"]
    return f"{before}{HIDDEN}@" if before else f"{match['name']}={HIDDEN}"
