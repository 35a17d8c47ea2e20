"""Addresses of stores: parsing them, and showing them without passwords."""

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
SHOWN_SETTINGS = ("host", "port", "dbname", "service", "sslmode", "sslrootcert", "passfile")
"""Settings in the query of a URL that are shown."""
PROGRAM_SETTINGS = {*("autocommit", "conninfo", "context", "cursor_factory", "prepare_threshold", "row_factory")}
"""Settings that the driver takes from programs only."""

_SQLITE = re.compile(r"sqlite(?:\+pysqlite)?://(?P<slash>/)?(?P<path>.*)", re.DOTALL)
_HOST = re.compile(r"[\w.%-]*|[0-9A-Fa-f:.]+(?:%\w+)?")
_DATABASE = re.compile(r"[^@:/?&=;\s]*")
_PLAIN = re.compile(r"[\w./+-]*")


@dataclass(frozen=True)
class Address:
    """A SQLite file, or a database of a PostgreSQL server."""

    shown: str
    """The form that `--store` reads, without passwords."""
    path: Path | None = None
    server: URL | None = None
    """The URL without password and settings."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further settings for PostgreSQL's driver, with the password."""

    def hide_secrets(self, message: str) -> str:
        """Return a message of the driver without the values of settings that are not shown."""
        secrets = {value for name, value in self.settings.items() if not _is_shown(name, value)}
        forms = {form for x in secrets for form in (x, quote(x), quote(x, ""), quote_plus(x))} - {""}
        for form in sorted(forms, key=len, reverse=True):
            message = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", HIDDEN, message)
        return message


def parse_address(url: str | Secret | Address) -> Address:
    """Return the address of a store; an error never repeats the text, which may hold a password.

    >>> parse_address("postgresql://me:secret@db/results?sslmode=require")
    Address(shown='postgresql+psycopg://me:***@db/results?sslmode=require', path=None, server=...)
    """
    if isinstance(url, Address):
        return url
    text = (url.reveal() if isinstance(url, Secret) else url).strip()
    sqlite = _SQLITE.fullmatch(text)
    if sqlite is not None and sqlite["path"] and not sqlite["slash"]:
        raise UsageError(f"a SQLite store has three slashes before its file, and no host: {DEFAULT}")
    if sqlite is not None or "://" not in text:
        return _parse_file(text, text if sqlite is None else sqlite["path"])
    return _parse_server(text)


MALFORMED = f"this is not the address of a store ({NOT_REPEATED}); write for example {FORMS}"


def _parse_file(text: str, name: str) -> Address:
    if name in ("", ":memory:"):
        raise UsageError(f"this names no file; write for example {DEFAULT}")
    if may_hold_password(name):
        try:
            exists = Path(name).exists()
        except (OSError, ValueError):
            exists = False
        if not exists:
            raise UsageError(MALFORMED)
    return Address(text, Path(name))


def _parse_server(text: str) -> Address:
    if text.startswith("postgres://"):
        raise UsageError("write postgresql:// instead of postgres://")
    error = UsageError(MALFORMED)
    if not text.isprintable():
        raise error
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise error from None
    if backend != "postgresql":
        raise UsageError(f"stores are in SQLite or PostgreSQL; write for example {FORMS}")
    if text.count("@") > 1:
        raise UsageError(f"an @ in a user or a password is written as %40 ({NOT_REPEATED})")
    if not (_HOST.fullmatch(url.host or "") and _DATABASE.fullmatch(url.database or "")):
        raise error
    settings = {name: value for name, value in url.query.items() if isinstance(value, str)}
    if len(settings) < len(url.query):
        raise UsageError(f"this has a setting twice after its question mark ({NOT_REPEATED})")
    if url.password is not None:
        settings["password"] = str(url.password)
    texts = (url.username or "", url.database or "", *settings.values())
    if PROGRAM_SETTINGS & settings.keys() or any("\0" in value for value in texts):
        raise error
    server = URL.create("postgresql+psycopg", url.username, None, url.host, url.port, url.database)
    return Address(_hide_settings(server, settings), None, server, settings)


def _is_shown(name: str, value: str) -> bool:
    return name in SHOWN_SETTINGS and _PLAIN.fullmatch(value) is not None


def _hide_settings(server: URL, settings: Mapping[str, str]) -> str:
    user = server.username
    safe = server.set(
        username=user if user is None or _PLAIN.fullmatch(user) else HIDDEN,
        password=HIDDEN if "password" in settings and user is not None else None,
        query={name: value for name, value in settings.items() if _is_shown(name, value)},
    )
    return safe.render_as_string(hide_password=True)
