"""From a request to an answer: its words and options read as a command's, its lane, and who still waits."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from separatrix.core.errors import SeparatrixError, UsageError, on_one_line
from separatrix.core.parameters import read_words
from separatrix.web.lanes import Lane, TooLong
from separatrix.web.settings import Settings
from separatrix.web.workers import Call, Refused, Slow, Unavailable

JSON, LINES, CELLS = "application/json", "application/x-ndjson", "application/vnd.separatrix.cells"
MOST_KEPT = 8 * 2**20
"""Bytes of answers that are kept."""
LARGEST_KEPT = 4 * 2**20
MOST_KNOWN_SLOW = 1000
WORTH_NOTING = 0.1
"""Seconds after which it is worth while to remember that something was not answered at once."""


@dataclass
class Kept:
    """Answers that were given, the latest last; the oldest are forgotten."""

    answers: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    size: int = 0

    def get(self, key: str) -> bytes | None:
        """The answer to a call, if it is kept."""
        found = self.answers.get(key)
        if found is not None:
            self.answers.move_to_end(key)
        return found

    def put(self, key: str, answer: bytes) -> None:
        """Keep an answer."""
        if len(answer) > LARGEST_KEPT or key in self.answers:
            return
        self.answers[key] = answer
        self.size += len(answer)
        while self.size > MOST_KEPT:
            self.size -= len(self.answers.popitem(last=False)[1])


@dataclass
class Desk:
    """Where requests go: what is closed to the quick lane, what is not to the slow one."""

    settings: Settings
    quick: Lane
    slow: Lane
    kept: Kept = field(default_factory=Kept)
    known_slow: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _ending: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        """Wait for no answer any more: whoever does is told so."""
        self._ending.set()

    async def answer(
        self, request: Request, call: Call, media: str = JSON, file: str = "", state: str = ""
    ) -> Response:
        """The answer to a call: at once, or as lines of progress for one who takes them.

        `state` is that of what the answer is about, where that changes: an answer is kept for the same state.
        """
        key = _key(call, state)
        found = self.kept.get(key)
        if found is None and _kind(call) not in self.known_slow:
            asked = time.monotonic()
            try:
                found = await self._while_waited_for(request, self.quick.ask(_with(call, quick=True)))
            except Slow:
                if time.monotonic() - asked > WORTH_NOTING:
                    self._note_slow(call)
            except TooLong:
                pass  # a machine that is busy now may not be so the next time
        if found is None and call.check is not None:
            await self._require_valid(request, replace(call, name=call.check))
        if found is None and LINES in request.headers.get("accept", "") and not file:
            return StreamingResponse(self._lines(request, call, key, media), media_type=LINES)
        if found is None:
            found = await self._while_waited_for(request, self.slow.ask(_with(call, quick=False)))
        self.kept.put(key, found)
        named = {"content-disposition": f'attachment; filename="{file}"'} if file else {}
        return Response(found, media_type=media, headers={"cache-control": "no-store", **named})

    async def _require_valid(self, request: Request, check: Call) -> None:
        """Refuse wrong arguments before the call waits for a slow process."""
        with suppress(TooLong):  # the slow process checks them again
            await self._while_waited_for(request, self.quick.ask(_with(check, quick=True)))

    def known(self, name: str) -> list[bytes]:
        """All answers to calls of a function that are kept."""
        start = _key(Call(name, {})).partition("{")[0]
        return [answer for key, answer in self.kept.answers.items() if key.startswith(start)]

    async def _lines(self, request: Request, call: Call, key: str, media: str) -> AsyncIterator[bytes]:
        """Steps while it is computed, then the result or what was wrong; what is no JSON comes as base64."""
        steps: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()

        async def work() -> bytes:
            try:
                slow = self.slow.ask(_with(call, quick=False), steps.put_nowait)
                return await self._while_waited_for(request, slow)
            finally:
                steps.put_nowait(None)

        task = asyncio.create_task(work())
        try:
            yield _line({"step": {"what": "started"}})
            while (step := await steps.get()) is not None:
                yield _line({"step": step})
            try:
                found = await task
            except SeparatrixError as error:
                yield _line(problem(error))
                return
            except Gone:
                return
            self.kept.put(key, found)
            yield b'{"result":' + (found if media == JSON else _quoted(found)) + b"}\n"
        finally:
            task.cancel()

    async def _while_waited_for(self, request: Request, work: Coroutine[Any, Any, bytes]) -> bytes:
        """What `work` gives, as long as somebody waits and the explorer goes on; else it is cancelled."""
        task = asyncio.create_task(work)
        reasons = [asyncio.create_task(_left(request)), asyncio.create_task(self._ending.wait())]
        try:
            await asyncio.wait([task, *reasons], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            raise Ended("the explorer was ended") if self._ending.is_set() else Gone
        finally:
            for each in (task, *reasons):
                each.cancel()

    def _note_slow(self, call: Call) -> None:
        self.known_slow[_kind(call)] = None
        while len(self.known_slow) > MOST_KNOWN_SLOW:
            self.known_slow.popitem(last=False)


def _kind(call: Call) -> str:
    """What is slow once is slow again: the same but for numbers and the ends of ranges, which one drags."""
    words = {name: _shape(value) for name, value in call.arguments.get("words", {}).items()}
    return _key(replace(call, arguments={**call.arguments, "words": words}))


def _shape(value: str) -> str:
    if ":" in value:
        return "a range"
    return "a number" if any(character.isdecimal() for character in value) else value


def _key(call: Call, state: str = "") -> str:
    return json.dumps([call.name, call.arguments, state], sort_keys=True)


def _with(call: Call, quick: bool) -> Call:
    return replace(call, arguments={**call.arguments, "quick": quick})


def _quoted(answer: bytes) -> bytes:
    return b'"' + base64.b64encode(answer) + b'"'


def _line(value: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(value)}\n".encode()


class Ended(Unavailable):
    """The explorer ends."""


class Gone(Exception):
    """Nobody waits for the answer any more."""


async def _left(request: Request) -> None:
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return


def read_query(
    request: Request, options: Collection[str], known: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """Parameters and options of an address: `n=1e6` is a parameter, `--of=margin` an option."""
    pairs = request.query_params.multi_items()
    words = read_words([f"{name}={value}" for name, value in pairs if not name.startswith("--")], known)
    typed = read_words([f"{name}={value}" for name, value in pairs if name.startswith("--")])
    chosen = {name.removeprefix("--"): value for name, value in typed.items()}
    unknown = next((name for name in chosen if name not in options), None)
    if unknown is not None:
        takes = f"; there is {', '.join(f'--{option}' for option in options)}" if options else ""
        raise UsageError(f"--{unknown} is no option here{takes}")
    return words, chosen


def problem(error: Exception) -> dict[str, Any]:
    """What is wrong, in the words of the command line, and which parameter it is about."""
    from separatrix.core.errors import user_lines

    said = str(error) if isinstance(error, Refused) else "\n".join(user_lines(error))
    lines = [on_one_line(line) for line in said.splitlines()] or ["this cannot be answered"]
    most_cells = error.most_cells if isinstance(error, Refused) else None
    return {"error": "\n".join(lines), "field": _field(lines[0]), "most_cells": most_cells}


def _field(line: str) -> str | None:
    """The parameter or option that a line is about: the first that it names as one types it."""
    for word in line.replace("(", " ").split():
        name, equals, _ = word.partition("=")
        if equals and name.strip("-").replace("_", "").isalnum():
            return name
        if word.startswith("--"):
            return word.strip(",;:")
    return None
