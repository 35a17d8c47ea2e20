"""From a call to its answer: the cache, the choice of the lane, progress, and clients that leave."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from separatrix.core.errors import SeparatrixError, on_one_line, user_lines
from separatrix.web.lanes import Lane, TooLong
from separatrix.web.settings import Settings
from separatrix.web.workers import JSON, Call, RefusedRequest, Reply, Slow, Unavailable

LINES = "application/x-ndjson"
MAX_CACHE_BYTES, MAX_CACHED_REPLY_BYTES = 8 * 2**20, 4 * 2**20


class ExplorerEnded(Unavailable):
    """The explorer ended while the client waited."""


class ClientGone(Exception):
    """The client closed the connection."""


@dataclass
class ReplyCache:
    """The latest replies, up to a number of bytes."""

    replies: OrderedDict[str, Reply] = field(default_factory=OrderedDict)
    size: int = 0

    def get(self, key: str) -> Reply | None:
        """Return the reply to a call, if it is cached."""
        reply = self.replies.get(key)
        if reply is not None:
            self.replies.move_to_end(key)
        return reply

    def add(self, key: str, reply: Reply) -> None:
        """Add a reply, and drop the oldest ones over the limit."""
        if len(reply.body) > MAX_CACHED_REPLY_BYTES or key in self.replies:
            return
        self.replies[key] = reply
        self.size += len(reply.body)
        while self.size > MAX_CACHE_BYTES:
            self.size -= len(self.replies.popitem(last=False)[1].body)


@dataclass
class Dispatcher:
    """Sends calls to the quick lane first, and to the slow lane if the quick one cannot answer them."""

    settings: Settings
    quick: Lane
    slow: Lane
    cache: ReplyCache = field(default_factory=ReplyCache)
    _is_ending: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        """Cancel pending requests; clients get 503."""
        self._is_ending.set()

    async def respond(self, request: Request, call: Call, state: str, streams: bool) -> Response:
        """Return the response to a request.

        `state` is that of the data behind the answer: a cached reply is used only for the same state. If
        `streams`, a slow answer is sent as lines of progress to a client that accepts them.
        """
        key = json.dumps([_name(call.function), call.arguments, state], sort_keys=True)
        reply = self.cache.get(key)
        if reply is None:
            with suppress(Slow, TooLong):
                reply = await self._wait(request, self.quick.ask(replace(call, is_quick=True)))
        if reply is None:
            if streams and LINES in request.headers.get("accept", ""):
                return StreamingResponse(self._stream_lines(request, call, key), media_type=LINES)
            reply = await self._wait(request, self.slow.ask(call))
        self.cache.add(key, reply)
        headers = {"cache-control": "no-store"}
        if reply.file_name:
            headers["content-disposition"] = f'attachment; filename="{reply.file_name}"'
        return Response(reply.body, media_type=reply.media_type, headers=headers)

    def cached_documents(self, function: Callable[..., Any]) -> list[Any]:
        """Return the cached answers of an endpoint, which must be JSON."""
        name = _name(function)
        replies = [reply for key, reply in self.cache.replies.items() if json.loads(key)[0] == name]
        return [json.loads(reply.body) for reply in replies]

    async def _stream_lines(self, request: Request, call: Call, key: str) -> AsyncIterator[bytes]:
        """Yield a line for each step, then the result or the problem; a body other than JSON is in base64."""
        steps: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()

        async def compute() -> Reply:
            try:
                return await self._wait(request, self.slow.ask(call, steps.put_nowait))
            finally:
                steps.put_nowait(None)

        task = asyncio.create_task(compute())
        try:
            # At once, so that the page can tell an answer that is computed from a server that hangs.
            yield _line({"step": {"what": "started"}})
            while (step := await steps.get()) is not None:
                yield _line({"step": step})
            try:
                reply = await task
            except SeparatrixError as error:
                # The status 200 has been sent; the client takes a line with `error` for the refusal.
                yield _line(describe_problem(error))
                return
            except ClientGone:
                return
            self.cache.add(key, reply)
            is_json = reply.media_type == JSON
            yield b'{"result":%b}\n' % (reply.body if is_json else b'"%b"' % base64.b64encode(reply.body))
        finally:
            task.cancel()

    async def _wait(self, request: Request, work: Coroutine[Any, Any, Reply]) -> Reply:
        """Wait for `work`; cancel it if the client leaves or the explorer ends."""
        task = asyncio.create_task(work)
        interruptions = [
            asyncio.create_task(_wait_for_disconnect(request)),
            asyncio.create_task(self._is_ending.wait()),
        ]
        try:
            await asyncio.wait([task, *interruptions], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            raise ExplorerEnded("the explorer was ended") if self._is_ending.is_set() else ClientGone
        finally:
            for pending in (task, *interruptions):
                pending.cancel()


def _line(value: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(value)}\n".encode()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def describe_problem(error: Exception) -> dict[str, Any]:
    """Return the body of an error: the message of the command line, and the parameter that it is about."""
    message = str(error) if isinstance(error, RefusedRequest) else "\n".join(user_lines(error))
    lines = [on_one_line(line) for line in message.splitlines()] or ["this cannot be answered"]
    max_cells = error.max_cells if isinstance(error, RefusedRequest) else None
    return {"error": "\n".join(lines), "field": _find_field(lines[0]), "most_cells": max_cells}


def _find_field(line: str) -> str | None:
    """Return the first parameter or option that a line names as it is typed.

    >>> [_find_field(line) for line in ("n=3 is too small (d=2)", "--seed=x is no number", "no such thing")]
    ['n', '--seed', None]
    """
    for word in line.replace("(", " ").split():
        name, equals, _ = word.partition("=")
        if equals and name.strip("-").replace("_", "").isalnum():
            return name
        if word.startswith("--"):
            return word.strip(",;:")
    return None
