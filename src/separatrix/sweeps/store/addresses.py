"""Where a store is, read from what the user gave: what connects to it, and what may be shown of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy import make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from separatrix.core.parameters import UsageError
from separatrix.core.secrets import HIDDEN, Secret, may_hold_password

DEFAULT = "sqlite:///results.db"
FORMS = f"{DEFAULT} or postgresql+psycopg://user@host/database"
NOT_REPEATED = "it is not repeated here, since it may hold a password"
SHOWN = ("host", "port", "dbname", "service", "sslmode", "sslrootcert", "passfile")
"""What a URL may say behind its question mark that is shown."""

OF_PYTHON = {"autocommit", "conninfo", "context", "cursor_factory", "prepare_threshold", "row_factory"}
"""What the driver takes from programs, not from URLs."""

_SQLITE = re.compile(r"sqlite(?:\+pysqlite)?://(?P<slash>/)?(?P<path>.*)", re.DOTALL)
_HOST = re.compile(r"[\w.%-]*|[0-9A-Fa-f:.]+(?:%\w+)?")
_DATABASE = re.compile(r"[^@:/?&=;\s]*")
_PLAIN = re.compile(r"[\w./+-]*")


@dataclass(frozen=True)
class Address:
    """A SQLite file, or a database of a PostgreSQL server."""

    shown: str
    """As `--store` reads it, without passwords."""
    path: Path | None = None
    server: URL | None = None
    """Without password and settings."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What PostgreSQL's driver takes besides, the password among them."""

    def without_secrets(self, message: str) -> str:
        """What the driver says, without what the user's settings say."""
        secrets = {value for name, value in self.settings.items() if not _is_shown(name, value)}
        spelled = {
            form
            for secret in secrets
            for form in (secret, quote(secret), quote(secret, ""), quote_plus(secret))
        }
        for each in sorted(spelled - {""}, key=len, reverse=True):
            message = re.sub(rf"(?<!\w){re.escape(each)}(?!\w)", HIDDEN, message)
        return message


def store_address(given: str | Secret | Address) -> Address:
    """The address in what the user gave; a refusal never repeats it.

    >>> store_address("postgresql://me:secret@db/results?sslmode=require")
    Address(shown='postgresql+psycopg://me:***@db/results?sslmode=require', path=None, server=...)
    """
    if isinstance(given, Address):
        return given
    text = (given.reveal() if isinstance(given, Secret) else given).strip()
    sqlite = _SQLITE.fullmatch(text)
    if sqlite is not None and sqlite["path"] and not sqlite["slash"]:
        raise UsageError(f"a SQLite store has three slashes before its file, and no host: {DEFAULT}")
    if sqlite is not None or "://" not in text:
        return _file(text, text if sqlite is None else sqlite["path"])
    return _server(text)


def _file(text: str, name: str) -> Address:
    """The address of a path as it is, whatever stands in it."""
    if name in ("", ":memory:"):
        raise UsageError(f"this names no file; write for example {DEFAULT}")
    if may_hold_password(name):
        try:
            known = Path(name).exists()
        except (OSError, ValueError):
            known = False
        if not known:
            raise UsageError(f"this is no store ({NOT_REPEATED}); write for example {FORMS}")
    return Address(text, Path(name))


def _server(text: str) -> Address:
    if text.startswith("postgres://"):
        raise UsageError("write postgresql:// instead of postgres://")
    malformed = UsageError(f"this is no store ({NOT_REPEATED}); write for example {FORMS}")
    if not text.isprintable():
        raise malformed
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise malformed from None
    if backend != "postgresql":
        raise UsageError(f"a store is kept in SQLite or PostgreSQL alone; write for example {FORMS}")
    if text.count("@") > 1:
        raise UsageError(f"an @ in a user or a password is written as %40 ({NOT_REPEATED})")
    if not (
        text.isprintable() and _HOST.fullmatch(url.host or "") and _DATABASE.fullmatch(url.database or "")
    ):
        raise malformed
    settings = {name: value for name, value in url.query.items() if isinstance(value, str)}
    if len(settings) < len(url.query):
        raise UsageError(f"this says something twice behind its question mark ({NOT_REPEATED})")
    if OF_PYTHON & settings.keys():
        raise malformed
    if url.password is not None:
        settings["password"] = str(url.password)
    if any("\0" in each for each in (url.username or "", url.database or "", *settings.values())):
        raise malformed
    server = URL.create("postgresql+psycopg", url.username, None, url.host, url.port, url.database)
    return Address(_shown(server, settings), None, server, settings)


def _is_shown(name: str, value: str) -> bool:
    return name in SHOWN and _PLAIN.fullmatch(value) is not None


def _shown(server: URL, settings: Mapping[str, str]) -> str:
    user = server.username
    shown = server.set(
        username=user if user is None or _PLAIN.fullmatch(user) else HIDDEN,
        password=HIDDEN if "password" in settings and user is not None else None,
        query={name: value for name, value in settings.items() if _is_shown(name, value)},
    )
    return shown.render_as_string(hide_password=True)
