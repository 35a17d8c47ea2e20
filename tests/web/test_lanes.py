"""Processes that answer: they can be ended, and others take their place."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from separatrix.core.errors import SeparatrixError
from separatrix.core.startup import process_context
from separatrix.web import lanes
from separatrix.web.endpoints.questions import answer_verdict
from separatrix.web.lanes import Busy, Lane, TooLong
from separatrix.web.workers import PRELOADED, Call, RefusedRequest, Slow, WorkerDied

SPIKE = Call(
    answer_verdict, {"construction": "spike", "mechanisms": "softmax", "words": {}, "options": {}}, is_quick=True
)
ENDLESS = Call(
    answer_verdict,
    {"construction": "spike", "mechanisms": "window:size=64", "words": {"n": "4000"}, "options": {"draws": "100000"}},
)


@asynccontextmanager
async def lane(size: int = 1, seconds: float = 60) -> AsyncIterator[Lane]:
    found = Lane(size, seconds, process_context(PRELOADED))
    await found.start()
    try:
        yield found
    finally:
        await found.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def answers(found: Lane) -> None:
    assert json.loads((await found.ask(SPIKE)).body)["verdict"] == "distinguishes"


def alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def test_a_refusal_is_told_and_the_process_goes_on() -> None:
    async def work() -> None:
        async with lane() as found:
            before = found.processes
            with pytest.raises(RefusedRequest, match="n=abc is not a number"):
                await found.ask(replace(SPIKE, arguments={**SPIKE.arguments, "words": {"n": "abc"}}))
            with pytest.raises(Slow):
                await found.ask(replace(ENDLESS, is_quick=True))
            await answers(found)
            assert found.processes == before

    run(work())


def test_what_nobody_waits_for_is_ended() -> None:
    async def work() -> None:
        async with lane() as found:
            (before,) = found.processes
            asked = asyncio.create_task(found.ask(ENDLESS))
            await asyncio.sleep(0.3)
            asked.cancel()
            await answers(found)  # by another process
            assert before not in found.processes
            assert not alive(before)

    run(work())


def test_what_is_nearly_done_is_finished_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "GRACE_SECONDS", 60)

    async def work() -> None:
        async with lane() as found:
            before = found.processes
            asked = asyncio.create_task(found.ask(SPIKE))
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
                await found.ask(ENDLESS)
            found.max_seconds = 60
            await answers(found)

    run(work())


def test_a_process_that_dies_is_replaced() -> None:
    async def work() -> None:
        async with lane() as found:
            asked = asyncio.create_task(found.ask(ENDLESS))
            await asyncio.sleep(0.3)
            for process in found.processes:
                os.kill(process, signal.SIGKILL)
            with pytest.raises(WorkerDied, match="died"):
                await asked
            await answers(found)

    run(work())


def kill(found: Lane) -> frozenset[int]:
    """Kill all processes of a lane, and wait until they are dead."""
    killed = found.processes
    for process in killed:
        os.kill(process, signal.SIGKILL)
    for worker in found._workers:
        worker.process.join(10)
    return killed


def test_processes_that_died_while_idle_are_replaced_and_what_they_are_asked_is_answered() -> None:
    async def work() -> None:
        async with lane(size=2) as found:
            for _ in range(2):
                killed = kill(found)
                assert len(killed) == 2
                async with asyncio.timeout(60):
                    await asyncio.gather(*(answers(found) for _ in range(5)))
                    while len(found.processes) < 2:
                        await asyncio.sleep(0.01)
                assert not killed & found.processes

    run(work())


def test_a_place_is_not_lost_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with lane() as found:
            kill(found)
            with monkeypatch.context() as broken:
                broken.setattr(lanes, "start_worker", cannot_start)
                for _ in range(3):
                    async with asyncio.timeout(10):
                        with pytest.raises(SeparatrixError, match="enough memory"):
                            await found.ask(SPIKE)
            async with asyncio.timeout(60):
                await answers(found)

    run(work())


def cannot_start(*_: Any) -> Any:
    raise SeparatrixError("see whether there is enough memory")


def test_waiting_for_a_free_process_has_an_end() -> None:
    async def work() -> None:
        async with lane() as found:
            found.max_wait = 0.2
            asked = asyncio.create_task(found.ask(ENDLESS))
            await asyncio.sleep(0.1)
            with pytest.raises(Busy, match="no process was free for this within 0 s"):
                await found.ask(SPIKE)
            asked.cancel()
            found.max_wait = 60
            await answers(found)

    run(work())


def test_closing_ends_what_is_being_computed_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with lane(size=2) as found:
            asked = [asyncio.create_task(found.ask(ENDLESS)) for _ in range(2)]
            await asyncio.sleep(0.2)
            before = found.processes
            await asyncio.wait_for(found.close(), 60)
            await asyncio.wait(asked, timeout=60)
            assert all(each.cancelled() for each in asked)
            assert not any(alive(each) for each in before)

    run(work())
    assert caplog.text == ""


def test_a_queue_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_WAITING", 2)

    async def work() -> None:
        async with lane() as found:
            asked = [asyncio.create_task(found.ask(ENDLESS)) for _ in range(3)]
            await asyncio.sleep(0.2)
            with pytest.raises(Busy):
                await found.ask(SPIKE)
            for each in asked:
                each.cancel()
            await asyncio.wait(asked)
            await answers(found)

    run(work())
