"""Processes that answer: they can be ended, and others take their place."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from separatrix.startup import process_context
from separatrix.web import lanes
from separatrix.web.lanes import PRELOADED, Busy, Call, Lane, Refused, Slow, TooLong

SPIKE = {"construction": "spike", "mechanisms": "softmax", "words": {}, "options": {}, "quick": True}
ENDLESS = {
    "construction": "spike",
    "mechanisms": "window:size=64",
    "words": {"n": "4000"},
    "options": {"draws": "100000"},
    "quick": False,
}


@asynccontextmanager
async def lane(size: int = 1, seconds: float = 60) -> AsyncIterator[Lane]:
    found = Lane("test", size, seconds, process_context(PRELOADED))
    await found.open()
    try:
        yield found
    finally:
        await found.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def answers(found: Lane) -> None:
    assert json.loads(await found.ask(Call("verdicts", SPIKE)))["verdict"] == "distinguishes"


def alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def test_a_refusal_is_told_and_the_process_goes_on() -> None:
    async def work() -> None:
        async with lane() as found:
            before = found.processes
            with pytest.raises(Refused, match="n=abc is not a number"):
                await found.ask(Call("verdicts", {**SPIKE, "words": {"n": "abc"}}))
            with pytest.raises(Slow):
                await found.ask(Call("verdicts", {**ENDLESS, "quick": True}))
            await answers(found)
            assert found.processes == before

    run(work())


def test_what_nobody_waits_for_is_ended() -> None:
    async def work() -> None:
        async with lane() as found:
            (before,) = found.processes
            asked = asyncio.create_task(found.ask(Call("verdicts", ENDLESS)))
            await asyncio.sleep(0.3)
            asked.cancel()
            await answers(found)  # by another process
            assert before not in found.processes
            assert not alive(before)

    run(work())


def test_what_is_nearly_done_is_finished_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "PATIENCE", 60)

    async def work() -> None:
        async with lane() as found:
            before = found.processes
            asked = asyncio.create_task(found.ask(Call("verdicts", SPIKE)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asked.cancel()
            await answers(found)
            assert found.processes == before

    run(work())


def test_what_takes_too_long_is_ended() -> None:
    async def work() -> None:
        async with lane(seconds=0.5) as found:
            with pytest.raises(TooLong, match="give the command in a terminal"):
                await found.ask(Call("verdicts", ENDLESS))
            found.seconds = 60
            await answers(found)

    run(work())


def test_a_process_that_dies_is_replaced() -> None:
    async def work() -> None:
        async with lane() as found:
            asked = asyncio.create_task(found.ask(Call("verdicts", ENDLESS)))
            await asyncio.sleep(0.3)
            for process in found.processes:
                os.kill(process, signal.SIGKILL)
            with pytest.raises(Refused, match="died"):
                await asked
            await answers(found)

    run(work())


def test_a_queue_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_WAITING", 2)

    async def work() -> None:
        async with lane() as found:
            asked = [asyncio.create_task(found.ask(Call("verdicts", ENDLESS))) for _ in range(3)]
            await asyncio.sleep(0.2)
            with pytest.raises(Busy):
                await found.ask(Call("verdicts", SPIKE))
            for each in asked:
                each.cancel()
            await asyncio.wait(asked)
            await answers(found)

    run(work())
