"""What a database's own errors mean for the user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from separatrix.core.parameters import SeparatrixError, UsageError


class StoreError(SeparatrixError):
    """The store cannot be used, or was lost on the way; what was committed is kept."""


class NoStore(UsageError):
    """There is no store at this address yet."""


class DamageWarning(UserWarning):
    """A part of a store is damaged, and left out of an answer."""


DAMAGED = (
    "is damaged; it is left as it is: separatrix store check says where, separatrix store repair saves "
    "what is intact"
)
MEANINGS = {
    "database is locked": "is locked by another program; wait until it ends, then give the same command "
    "again",
    "database or disk is full": "cannot grow: the disk is full; free some space, then give the same command "
    "again, and it goes on from what was stored",
    "disk i/o error": "cannot be read or written: the disk reports an error",
    "file is not a database": "is not a store, or its beginning was overwritten; it is left as it is",
    "malformed": DAMAGED,
    "unsupported file format": DAMAGED,
    "could not decode to utf-8": DAMAGED,
    "no such table": DAMAGED,
    "no such column": DAMAGED,
    "readonly database": "may not be written to",
    "unable to open database file": "cannot be opened; does its folder exist, and may it be written to?",
    "no space left on device": "cannot grow: the disk of the server is full; what was stored is kept",
    "password authentication failed": "refuses this user with this password",
    "no password supplied": "asks for a password; keep it in ~/.pgpass or in PGPASSWORD",
    "out of range": "cannot hold a number this large; seeds end at 2**63 - 1",
    "permission denied": "refuses this user; its owner can grant the right to make and fill tables",
}
"""What a message of SQLite or PostgreSQL contains, and what to say."""


@contextmanager
def told(where: str) -> Iterator[None]:
    """Turn an error of the database into one line about the store at `where`."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        said = error.orig if isinstance(error, DBAPIError) else error
        raise StoreError(f"the store {where} {meaning(str(said))}") from None
    except UnicodeDecodeError:  # SQLite's message quotes what stands in the file
        raise StoreError(f"the store {where} {DAMAGED}") from None
    except OverflowError as error:  # SQLite's driver says so in Python's words
        raise StoreError(f"the store {where} {meaning(f'out of range: {error}')}") from None


def meaning(message: str) -> str:
    """What to say of a message of the database."""
    for part, words in MEANINGS.items():
        if part in message.lower():
            return words
    first = message.strip().splitlines()[0] if message.strip() else "no more is known"
    return f"does not answer ({first}); what was stored is kept: give the same command again when it is back"
