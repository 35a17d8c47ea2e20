"""The application: access control in front of everything, the API, and the files of the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from separatrix import __version__
from separatrix.core.errors import SeparatrixError, user_lines
from separatrix.core.startup import process_context
from separatrix.web.dispatch import ClientGone, Dispatcher, describe_problem
from separatrix.web.guard import API, LOOPBACK_NAMES, Guard
from separatrix.web.lanes import Lane
from separatrix.web.routes import make_router
from separatrix.web.settings import Settings
from separatrix.web.workers import PRELOADED, Unavailable

STATIC = Path(__file__).parent / "static"
VIEWS = ("verdict", "map", "atlas", "assess", "learn", "results", "compare")
"""The first words of addresses that show the page; the rest are the words of that command."""
NOT_FOUND_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Separatrix</title></head>
<body><p>{message}. <a href="/">To the explorer</a></p></body></html>
"""
LANE_SIZE = 2
"""The number of processes in each lane."""
MAX_QUICK_SECONDS, MAX_SLOW_SECONDS = 3.0, 600.0
MAX_QUICK_WAIT = 60.0
"""Seconds that a request may wait for a process of the quick lane."""
SLOW_NICENESS = 10
"""Slow answers give way to quick ones: a slider is to follow the mouse while an atlas is computed."""


def make_app(settings: Settings, names: Iterable[str] = LOOPBACK_NAMES, any_address: bool = False) -> FastAPI:
    """Return the explorer as an ASGI application; its processes start and end with it."""

    @asynccontextmanager
    async def run_lanes(app: FastAPI) -> AsyncIterator[None]:
        context = process_context(PRELOADED)
        quick = Lane(LANE_SIZE, MAX_QUICK_SECONDS, context, max_wait=MAX_QUICK_WAIT)
        slow = Lane(LANE_SIZE, MAX_SLOW_SECONDS, context, SLOW_NICENESS, max_wait=MAX_SLOW_SECONDS)
        app.state.dispatcher = Dispatcher(settings, quick, slow)
        await quick.start()
        # The page is shown before the slow processes run: the first view needs only quick answers.
        slow_start = asyncio.create_task(slow.start())
        try:
            yield
        finally:
            slow_start.cancel()
            await asyncio.gather(slow_start, return_exceptions=True)
            await quick.close()
            await slow.close()

    app = FastAPI(
        title="Separatrix",
        version=__version__,
        summary="What an attention mechanism can and cannot tell apart.",
        # Their pages load scripts from elsewhere, which the Content-Security-Policy forbids.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        lifespan=run_lanes,
    )
    app.include_router(make_router())
    _add_page(app)
    _add_error_handlers(app)
    app.add_middleware(Guard, names=names, any_address=any_address)
    return app


def _add_page(app: FastAPI) -> None:
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    app.add_api_route("/", page, include_in_schema=False)
    for view in VIEWS:
        app.add_api_route(f"/{view}", page, include_in_schema=False)
        app.add_api_route(f"/{view}/{{words:path}}", page, include_in_schema=False)


def _add_error_handlers(app: FastAPI) -> None:
    """Answer every error in one line of JSON, or with a small page to a browser, never with a traceback."""

    async def refuse(request: Request, error: Exception) -> Response:
        status = 503 if isinstance(error, Unavailable) else 400
        return JSONResponse(describe_problem(error), status)

    async def ignore(request: Request, error: Exception) -> Response:
        return Response(status_code=204)  # the client has gone; nothing is sent

    async def report_http_error(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 400
        message = "there is nothing at this address" if status == 404 else "this cannot be asked so"
        is_browser = "text/html" in request.headers.get("accept", "")
        if is_browser and not request.url.path.startswith(API):
            return HTMLResponse(NOT_FOUND_PAGE.format(message=message.capitalize()), status)
        return JSONResponse({"error": message, "field": None}, status)

    async def report_fault(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": " ".join(user_lines(error)), "field": None}, 500)

    app.add_exception_handler(SeparatrixError, refuse)
    app.add_exception_handler(ClientGone, ignore)
    app.add_exception_handler(HTTPException, report_http_error)
    app.add_exception_handler(RequestValidationError, report_http_error)
    app.add_exception_handler(Exception, report_fault)
