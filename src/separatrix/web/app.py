"""The application: the guard before everything, the API, and the page's files."""

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
from separatrix.core.registry import modules
from separatrix.core.startup import process_context
from separatrix.web import api
from separatrix.web.guard import LOOPBACK, Guard
from separatrix.web.lanes import Lane
from separatrix.web.requests import Desk, Gone, problem
from separatrix.web.settings import Settings
from separatrix.web.workers import PRELOADED, Unavailable

STATIC = Path(__file__).parent / "static"
VIEWS = ("verdict", "map", "atlas", "assess", "learn", "results", "compare")
"""First words of the page's own addresses: the commands that they are the words of."""
NOTHING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Separatrix</title></head>
<body><p>{said}. <a href="/">To the explorer</a></p></body></html>
"""
"""What a browser shows at an address that is none of the page's."""
QUICK, SLOW = 2, 2
"""Processes for what is answered at once, and for what is not."""
LONGEST_QUICK, LONGEST_SLOW = 3.0, 600.0
LONGEST_WAIT = 60.0
"""Seconds to wait for a process that answers at once."""
NICENESS = 10


def make_app(settings: Settings, names: Iterable[str] = LOOPBACK, any_address: bool = False) -> FastAPI:
    """The whole explorer, as an ASGI application; its processes start and end with it."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        context = process_context(PRELOADED)
        quick = Lane("quick", QUICK, LONGEST_QUICK, context, longest_wait=LONGEST_WAIT)
        slow = Lane("slow", SLOW, LONGEST_SLOW, context, NICENESS, longest_wait=LONGEST_SLOW)
        app.state.desk = Desk(settings, quick, slow)
        await quick.open()
        opening = asyncio.create_task(slow.open())  # which nobody waits for yet
        try:
            yield
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            await quick.close()
            await slow.close()

    app = FastAPI(
        title="Separatrix",
        version=__version__,
        summary="What an attention mechanism can and cannot tell apart.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        lifespan=running,
    )
    for module in modules(api):
        app.include_router(module.router)
    _add_page(app)
    _add_problems(app)
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


def _add_problems(app: FastAPI) -> None:
    """Every error is one line of JSON, or of a page where a browser goes astray, never a traceback."""

    async def refuse(request: Request, error: Exception) -> Response:
        status = 503 if isinstance(error, Unavailable) else 400
        return JSONResponse(problem(error), status)

    async def gone(request: Request, error: Exception) -> Response:
        return Response(status_code=204)  # nobody hears it

    async def unknown(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 400
        said = "there is nothing at this address" if status == 404 else "this cannot be asked so"
        if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/"):
            return HTMLResponse(NOTHING.format(said=said.capitalize()), status)
        return JSONResponse({"error": said, "field": None}, status)

    async def unforeseen(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": " ".join(user_lines(error)), "field": None}, 500)

    app.add_exception_handler(SeparatrixError, refuse)
    app.add_exception_handler(Gone, gone)
    app.add_exception_handler(HTTPException, unknown)
    app.add_exception_handler(RequestValidationError, unknown)
    app.add_exception_handler(Exception, unforeseen)
