"""Errors of a store, one line each, and the report of what is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy.exc import DBAPIError

from separatrix.core.documents import Document, Hidden
from separatrix.core.parameters import SeparatrixError, UsageError


class StoreError(SeparatrixError):
    """The store cannot be used, or became unavailable; committed results are kept."""


class NoStore(UsageError):
    """There is no store at this address yet."""


class DamageWarning(UserWarning):
    """A part of a store is damaged, and left out of a result."""


DAMAGED = (
    "is damaged and is left unchanged: separatrix store check reports the damage, separatrix store repair "
    "copies the intact rows into a new store"
)
MEANINGS = {
    "database is locked": "is locked by another program; wait until it ends, then repeat the command",
    "database or disk is full": "cannot grow: the disk is full; free some space, then repeat the command: it "
    "continues from the stored results",
    "disk i/o error": "cannot be read or written: the disk reports an error",
    "file is not a database": "is not a store, or its beginning was overwritten; it is left unchanged",
    "malformed": DAMAGED,
    "unsupported file format": DAMAGED,
    "could not decode to utf-8": DAMAGED,
    "no such table": DAMAGED,
    "no such column": DAMAGED,
    "readonly database": "may not be written to",
    "unable to open database file": "cannot be opened; check that its folder exists and may be written to",
    "no space left on device": "cannot grow: the disk of the server is full; stored results are kept",
    "password authentication failed": "rejects this user with this password",
    "no password supplied": "requires a password; keep it in ~/.pgpass or in PGPASSWORD",
    "out of range": "cannot hold a number this large; seeds end at 2**63 - 1",
    "permission denied": "rejects this user; its owner can grant the right to create and fill tables",
}
"""Messages of SQLite and PostgreSQL by a part of their text, and the explanation for the user."""
READ_ERRORS = (DBAPIError, UnicodeDecodeError)
"""Errors that SQLAlchemy raises while rows are read; `is_damage` tells which of them damage explains."""


@contextmanager
def as_store_error(location: str) -> Iterator[None]:
    """Turn an error of the database into one line about the store at `location`."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise StoreError(f"the store {location} {explain(str(cause))}") from None
    except UnicodeDecodeError:  # SQLite's message quotes bytes of the damaged file
        raise StoreError(f"the store {location} {DAMAGED}") from None
    except OverflowError as error:  # raised by Python's SQLite driver for large integers
        raise StoreError(f"the store {location} {explain(f'out of range: {error}')}") from None


def explain(message: str) -> str:
    """Return the explanation for a message of the database."""
    for part, explanation in MEANINGS.items():
        if part in message.lower():
            return explanation
    first = message.strip().splitlines()[0] if message.strip() else "no further details"
    return f"does not respond ({first}); stored results are kept: repeat the command when it is available"


def is_damage(error: Exception) -> bool:
    """Whether an error is about the content of a database, not about the connection to it."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(error, UnicodeDecodeError) or explain(str(cause)) == DAMAGED


NOUNS = {
    "cells": ("cell", "cells"),
    "sweeps": ("sweep", "sweeps"),
    "environments": ("environment", "environments"),
    "members": ("member of a sweep", "members of sweeps"),
    "files": ("file", "files"),
    "tables": ("table", "tables"),
}


@dataclass
class Damage(Document):
    """Rows of each table that are not as they were written, or gone; falsy where there are none."""

    store: Hidden[str]
    altered: dict[str, int] = field(default_factory=dict)
    """Rows whose checksum does not match their content."""
    lost: dict[str, int] = field(default_factory=dict)
    """Rows that are in the index of a table and not in the table."""

    def __bool__(self) -> bool:
        return bool(self.altered or self.lost)

    def add(self, fate: Literal["altered", "lost"], table: str, count: int) -> None:
        """Count damaged rows of a table."""
        if count > 0:
            counts = self.altered if fate == "altered" else self.lost
            counts[table] = counts.get(table, 0) + count

    @property
    def description(self) -> str:
        """The counts in words: `3 cells are altered, 12 members of sweeps are lost`."""
        return ", ".join(
            f"1 {singular} is {fate}" if counts[table] == 1 else f"{counts[table]:,} {plural} are {fate}"
            for fate, counts in (("altered", self.altered), ("lost", self.lost))
            for table, (singular, plural) in NOUNS.items()
            if table in counts
        )

    @property
    def warning(self) -> str:
        """One line for the user."""
        return (
            f"the store {self.store} is damaged: {self.description}; the intact rows are used. separatrix "
            "store check reports the damage, separatrix store repair copies the intact rows into a new store"
        )
