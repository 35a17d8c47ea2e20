"""The explorer: start-up time, time of a frame, many clients at once, and memory after many requests."""

from __future__ import annotations

import http.client
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks._base import Line, Measurement, at_most, attempt, require
from separatrix.web.app import STATIC

CLIENTS = 50
SECONDS = 20.0
FRAMES, REST = 12, 3.0
"""A person drags for `FRAMES` frames, then pauses for about `REST` seconds."""
REQUESTS, ASKING = 10_000, 8
"""The number of requests for small maps, and the number of simultaneous clients."""
CELLS = "application/vnd.separatrix.cells"


@contextmanager
def serving() -> Iterator[tuple[int, int, float]]:
    """Start an explorer; yield its process, its port, and the seconds until it answers."""
    command = [sys.executable, "-P", "-c", "from separatrix.cli import main; main()"]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*command, "explore", "--no-browser", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
            Client(port).get("/api/v1/about")
            yield process.pid, port, time.perf_counter() - started
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


class Client:
    """The connection of one person."""

    def __init__(self, port: int, seed: int = 0) -> None:
        self.line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.random = random.Random(seed)

    def get(self, path: str) -> bytes:
        """Return the body of a successful response."""
        self.line.request("GET", path, headers={"accept": CELLS})
        reply = self.line.getresponse()
        body = reply.read()
        require(reply.status == 200, f"{path}: {body[:200]!r}")
        return body

    def frame(self) -> float:
        """Request one frame of a drag, with new parameters each time, and return its seconds."""
        b = f"0.{self.random.randrange(10**6):06}1"
        start = time.perf_counter()
        self.get(f"/api/v1/map/spike/softmax,linear?a1=0.5:1.5:64&n=1e3:1e18:64:log&b={b}")
        return time.perf_counter() - start

    def small_maps(self, count: int) -> None:
        """Request `count` small maps with new parameters."""
        for _ in range(count):
            b = f"0.{self.random.randrange(10**9):09}1"
            self.get(f"/api/v1/map/spike/softmax,linear?a1=0.5:1.5:4&n=1e3:1e18:4:log&b={b}")


def measure() -> Iterator[Line]:
    """Yield all measurements of the explorer."""
    weight = sum(file.stat().st_size for file in STATIC.rglob("*") if file.suffix != ".txt")
    yield at_most("explorer: the whole page, all views", weight / 1000, "KB", 400)
    with serving() as (process, port, ready):
        yield at_most("explorer: until the server answers", ready, "s", 3)
        yield from attempt("explorer: the page in a browser", lambda: _browsed(port))
        yield from attempt("explorer: many people at once", lambda: _at_once(port))
        yield from attempt("explorer: its memory after many requests", lambda: _memory(process, port))


def _browsed(port: int) -> Iterator[Measurement]:
    chromium = shutil.which("chromium")
    if chromium is None:
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
        address = f"http://127.0.0.1:{port}"
        shown = []
        for _ in range(5):
            page.goto("about:blank")
            page.goto(address, wait_until="commit")
            page.get_by_text("P(tells apart)").first.wait_for()
            shown.append(page.evaluate("performance.now()"))
        yield at_most("explorer: until the first screen has content", median(shown) / 1000, "s", 1)
        frames = _dragged(page, address)
        yield at_most("explorer: a frame of the drag, 64×64, two mechanisms, median", median(frames), "ms", 50)
        yield at_most("explorer: a frame of the drag, 95th percentile", quantiles(frames, n=20)[-1], "ms", 120)
        yield at_most("explorer: 400×400, two mechanisms", _fine(page, address), "ms", 400)
        browser.close()


def _dragged(page: Any, address: str) -> list[float]:
    """Return the milliseconds from request to drawing of every frame while a slider is dragged."""
    page.goto(f"{address}/map/spike/softmax,linear?a1=0.5:1.5:200&n=1e3:1e18:200:log")
    _wait(page, "performance.getEntriesByName('map-frame').length")
    slider = page.get_by_label("b, slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.evaluate("performance.clearMeasures()")
    for i in range(240):
        page.mouse.move(box["x"] + box["width"] * i / 240, middle)  # a new value each time, because results are cached
        page.wait_for_timeout(16)
    page.mouse.up()
    frames: list[float] = page.evaluate(
        "performance.getEntriesByName('map-frame').filter((entry) => entry.detail.cells <= 4096)"
        ".map((entry) => entry.duration)"
    )
    require(len(frames) > 40, f"only {len(frames)} frames were drawn while dragging")
    return frames


def _wait(page: Any, until: str) -> None:
    """Poll until a JavaScript expression is true on the page."""
    while not page.evaluate(until):
        page.wait_for_timeout(20)


def _fine(page: Any, address: str) -> float:
    """Return the median milliseconds from request to drawing of the finest map."""
    dense = {"device_scale_factor": 2}  # so that the screen can show every cell
    page = page.context.browser.new_page(**dense, bypass_csp=True)
    times: list[float] = []
    for i in range(5):
        page.goto(f"{address}/map/spike/softmax,linear?a1=0.5:1.5:400&n=1e3:1e18:400:log&b=0.2{i}")
        drawn = "performance.getEntriesByName('map-frame').filter((entry) => entry.detail.cells === 160000)"
        _wait(page, f"{drawn}.length")
        times.append(page.evaluate(f"{drawn}[0].duration"))
    return median(times)


def _at_once(port: int) -> Iterator[Measurement]:
    """Measure frames of many simultaneous people, of whom none may be refused, relative to one person."""
    alone = _people(port, 1, SECONDS / 2)
    together = _people(port, CLIENTS, SECONDS)
    times = median(together) / median(alone)
    yield at_most(f"explorer: a frame with {CLIENTS} people at once, relative to one person", times, "times", 10)


def _people(port: int, count: int, seconds: float) -> list[float]:
    frames: list[float] = []
    failures: list[BaseException] = []
    end = time.perf_counter() + seconds

    def person(number: int) -> None:
        client = Client(port, 1000 * count + number)
        time.sleep(client.random.uniform(0, min(REST, seconds / 4)))
        try:
            while time.perf_counter() < end:
                for _ in range(FRAMES):
                    frames.append(client.frame())
                    time.sleep(1 / 30)
                time.sleep(client.random.uniform(0.5, 1.5) * REST)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=person, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(not failures, f"of {count} people at once, one failed with: {failures[:1]}")
    return frames


def _memory(process: int, port: int) -> Iterator[Measurement]:
    """Measure the server's memory after many requests relative to that after the first tenth of them."""
    clients = [Client(port, seed) for seed in range(ASKING)]
    resident = []
    with ThreadPoolExecutor(ASKING) as threads:
        for part in (REQUESTS // 10, REQUESTS - REQUESTS // 10):
            list(threads.map(lambda client, count=part // ASKING: client.small_maps(count), clients))
            resident.append(_resident(process))
    yield at_most(f"explorer: memory after {REQUESTS:,} requests", resident[1] / resident[0], "times", 1.1)


def _resident(process: int) -> int:
    """Return the private kilobytes of a process and all its descendants."""
    children = [int(child) for task in _tasks(process) for child in (task / "children").read_text().split()]
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    own = sum(int(line.split()[1]) for line in lines if line.startswith("Private"))
    return own + sum(_resident(child) for child in children)


def _tasks(process: int) -> Iterator[Path]:
    return Path(f"/proc/{process}/task").glob("[0-9]*")
