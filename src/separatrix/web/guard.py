"""Access control, and the restrictions on what a page may load.

The page is for the user of this machine. A foreign page must not read it, not even by a name that it
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

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
REVALIDATE = (b"cache-control", b"no-cache")
"""A browser asks each time whether its copy is current: the page's files change with the program."""
SAME_SITE = ("same-origin", "none")
API = "/api/"
MAX_ADDRESS = 8000
MAX_PORT = 65535
ANY_ADDRESS = (r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", r"\[[0-9a-f:.]+\]")
"""Patterns of IP addresses in a Host header."""


class Guard:
    """Middleware that refuses requests which do not come from the page itself, and adds security headers."""

    def __init__(self, app: ASGIApp, names: Iterable[str] = LOOPBACK_NAMES, any_address: bool = False) -> None:
        """`any_address`: a Host may be any IP address, because the server listens on all of the machine's."""
        self.app = app
        hosts = [re.escape(f"[{name}]" if ":" in name else name) for name in names]
        hosts += ANY_ADDRESS if any_address else []
        self._host = re.compile(rf"(?:{'|'.join(hosts)})(?::[1-9][0-9]{{0,4}})?", re.ASCII | re.IGNORECASE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it in one line."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", []))
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(REVALIDATE)
                message["headers"] = [*headers, *SECURITY_HEADERS]
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        status, reason = self._find_refusal(scope, headers)
        if not status:
            # Routes know only GET; the server leaves out the body of the response to HEAD.
            await self.app({**scope, "method": "GET"}, receive, send_with_headers)
            return
        body = json.dumps({"error": reason}).encode()
        fields = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == 405:
            fields.append((b"allow", b"GET, HEAD"))
        await send_with_headers({"type": "http.response.start", "status": status, "headers": fields})
        await send_with_headers({"type": "http.response.body", "body": body})

    def _find_refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str]:
        """Return the status and the message of a refusal; 0 if the request is allowed."""
        host = headers.get("host", "")
        # Only one of two Host headers is checked below; the other could be any name.
        is_repeated = [name for name, _ in scope["headers"]].count(b"host") > 1
        if not self._host.fullmatch(host) or is_repeated:
            return 403, "this page answers to the name of this machine alone; open the address it was given"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "the explorer only shows; it takes GET and HEAD"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            return 403, "another site may not ask this page"
        # A link from another site may open the page, but not an answer of the API.
        site = headers.get("sec-fetch-site", "none")
        is_link = headers.get("sec-fetch-mode") == "navigate" and not scope["path"].startswith(API)
        if site not in SAME_SITE and not is_link:
            return 403, "another site may not ask this page"
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return 413, "a request here has no body"
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_ADDRESS:
            return 414, f"an address here has at most {MAX_ADDRESS:,} characters"
        return 0, ""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "192.168.0.2")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
