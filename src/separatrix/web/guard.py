"""Who may ask, and what a page may load.

The page is for whoever sits at this machine. A foreign page must not read it, not even by a name that it
lets point here (DNS rebinding): the Host must be this machine's, the Origin the page's own. Requests read and
never change anything, so there is nothing but GET and HEAD, without a body.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
ASK_AGAIN = (b"cache-control", b"no-cache")
"""A browser asks whether what it has is still so: the page's files change with the program."""
ONE_SITE = ("same-origin", "none")
API = "/api/"
LONGEST_ADDRESS = 8000
LARGEST_PORT = 65535
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]*[A-Za-z0-9_-]))(?::(?P<port>[0-9]{1,5}))?",
    re.ASCII,
)
"""A Host header: a name without a dot at its end, or an address in brackets, and perhaps a port."""


class Guard:
    """Refuses what is not asked by the page itself, and adds the headers that bind it."""

    def __init__(self, app: ASGIApp, names: Iterable[str] = LOOPBACK, any_address: bool = False) -> None:
        self.app = app
        self.names = frozenset(name.lower() for name in names)
        self.any_address = any_address
        """Whether a Host may be any number of the machine, where it listens to all."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it in one line."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", []))
                fresh = [] if any(name == b"cache-control" for name, _ in given) else [ASK_AGAIN]
                message["headers"] = [*given, *fresh, *HEADERS]
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        status, why = self._refusal(scope, headers)
        if not status:
            await self.app({**scope, "method": "GET"}, receive, guarded)  # of HEAD the server sends no body
            return
        body = json.dumps({"error": why}).encode()
        kept = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        allowed = [(b"allow", b"GET, HEAD")] if status == 405 else []
        await guarded({"type": "http.response.start", "status": status, "headers": [*kept, *allowed]})
        await guarded({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str]:
        """The status and the line of a refusal; 0 where there is none."""
        host = headers.get("host", "")
        names = [name for name, _ in scope["headers"]]
        if not self._is_ours(host) or names.count(b"host") > 1:
            return 403, "this page answers to the name of this machine alone; open the address it was given"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "the explorer only shows; it takes GET and HEAD"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            return 403, "another site may not ask this page"
        site = headers.get("sec-fetch-site", "none")
        opened = headers.get("sec-fetch-mode") == "navigate" and not scope["path"].startswith(API)
        if site not in ONE_SITE and not opened:
            return 403, "another site may not ask this page"
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return 413, "a request here has no body"
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_ADDRESS:
            return 414, f"an address here has at most {LONGEST_ADDRESS:,} characters"
        return 0, ""

    def _is_ours(self, host: str) -> bool:
        name = host_name(host)
        return bool(name) and (name in self.names or (self.any_address and _is_number(name)))


def host_name(host: str) -> str:
    """Return the name or address in a Host header, without its port; empty for a header that is malformed.

    >>> [host_name(host) for host in ("LOCALHOST:80", "[::1]:8310", "[::1]evil.com", "me@localhost", "::1")]
    ['localhost', '::1', '', '', '']
    """
    parts = _HOST.fullmatch(host)
    if parts is None or (parts["port"] is not None and not 1 <= int(parts["port"]) <= LARGEST_PORT):
        return ""
    return (parts["address"] or parts["name"]).lower()


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> [is_loopback(each) for each in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "192.168.0.2")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
