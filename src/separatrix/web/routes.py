"""Routes and their OpenAPI description, generated from the endpoints."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any, get_type_hints

from fastapi import APIRouter, Request
from pydantic import BaseModel, TypeAdapter
from starlette.responses import JSONResponse, Response

from separatrix.core.documents import schema_type
from separatrix.core.parameters import UsageError, read_words, split_mechanisms
from separatrix.core.registry import modules
from separatrix.core.secrets import Secret
from separatrix.web import endpoints
from separatrix.web.dispatch import Dispatcher
from separatrix.web.endpoints._base import ENDPOINTS, Endpoint
from separatrix.web.endpoints.maps import CELLS
from separatrix.web.settings import Settings
from separatrix.web.workers import Call, call_with, make_reply

MECHANISM_PARAMETERS = ("mechanism", "mechanisms")
MECHANISM_OPTIONS = ("mechanisms", "against")
"""Parts of the path and options that name mechanisms: each is admitted before it is used."""
WORDS_PARAMETER = {
    "name": "parameters",
    "in": "query",
    "style": "form",
    "explode": True,
    "schema": {"type": "object", "additionalProperties": {"type": "string"}},
    "description": "The construction's parameters by name, `n=1e6&a1=1.2`; those that are missing are "
    "taken from its reference point.",
}


class Problem(BaseModel):
    """What was wrong with a request, in the words of the command line."""

    error: str
    """One line for each problem."""
    field: str | None = None
    """The parameter, or the option with its dashes, that it is about."""
    most_cells: int | None = None
    """The limit that a map with too many cells exceeded."""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request is wrong, or cannot be answered"},
    403: {"model": Problem, "description": "Sent by another site"},
    404: {"model": Problem, "description": "There is nothing at this address"},
    405: {"model": Problem, "description": "Neither GET nor HEAD"},
    413: {"model": Problem, "description": "A request with a body"},
    414: {"model": Problem, "description": "The address is too long"},
    503: {"model": Problem, "description": "Too many requests wait, or it takes too long"},
}


def make_router() -> APIRouter:
    """Return the router with the route of every endpoint."""
    for _ in modules(endpoints):
        pass  # importing a module registers its endpoints
    router = APIRouter(prefix="/api/v1", responses=PROBLEMS)
    for endpoint in ENDPOINTS:
        parameters = _describe_parameters(endpoint)
        files: dict[int | str, dict[str, Any]] = {200: {"content": {media_type: {} for media_type in endpoint.files}}}
        router.add_api_route(
            endpoint.path,
            _make_route(endpoint),
            name=endpoint.function.__name__,
            description=inspect.getdoc(endpoint.function),
            tags=[endpoint.tag],
            response_model=None if endpoint.files else schema_type(endpoint.document),
            responses=files if endpoint.files else None,
            openapi_extra={"parameters": parameters} if parameters else None,
            response_class=Response if endpoint.files else JSONResponse,
        )
    return router


def _describe_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    """Return the OpenAPI description of the path and the query."""
    hints = get_type_hints(endpoint.function, include_extras=True)
    parameters = []
    for name in endpoint.parameters:
        if f"{{{name}}}" in endpoint.path or f"{{{name}:path}}" in endpoint.path:
            schema = TypeAdapter(hints[name]).json_schema()
            parameters.append(_describe_parameter(name, "path", schema, schema["description"]))
    if "words" in endpoint.parameters:
        parameters.append(WORDS_PARAMETER)
    for name, description in (endpoint.options or {}).items():
        parameters.append(_describe_parameter(f"--{name}", "query", {"type": "string"}, description))
    return parameters


def _describe_parameter(name: str, place: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    required = place == "path"
    return {"name": name, "in": place, "required": required, "schema": schema, "description": description}


def _make_route(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def run_in_server(request: Request) -> Response:
        dispatcher: Dispatcher = request.app.state.dispatcher
        values = {"settings": dispatcher.settings, "cached_documents": dispatcher.cached_documents}
        reply = make_reply(call_with(endpoint.function, values))
        return Response(reply.body, media_type=reply.media_type)

    async def run_in_worker(request: Request) -> Response:
        dispatcher: Dispatcher = request.app.state.dispatcher
        arguments = _read_arguments(endpoint, request, dispatcher.settings)
        state = ""
        if "store_address" in endpoint.parameters:
            state = _read_store_state(dispatcher.settings.store)
        if endpoint.refresh_seconds is not None:
            state += f" {time.monotonic() // endpoint.refresh_seconds}"
        call = Call(endpoint.function, arguments)
        return await dispatcher.respond(request, call, state, streams=not endpoint.files)

    return run_in_server if endpoint.in_server else run_in_worker


def _read_arguments(endpoint: Endpoint, request: Request, settings: Settings) -> dict[str, Any]:
    """Return the values for a function in a worker, after admitting the mechanisms that it names."""
    values: dict[str, Any] = dict(request.path_params)
    for name in MECHANISM_PARAMETERS:
        if name in values:
            settings.require_admitted(values[name])
    if len(split_mechanisms(values.get("mechanism", ""))) > 1:
        can_compare = "against" in (endpoint.options or {})
        remedy = "compare them with --against" if can_compare else "ask for each by itself"
        raise UsageError(f"{values['mechanism']} are several mechanisms; {remedy}")
    if endpoint.options is not None:
        values["words"], values["options"] = read_query(request, endpoint.options)
        if values["words"] and "words" not in endpoint.parameters:
            raise UsageError(f"{next(iter(values['words']))}= is no option {endpoint.why_no_words}")
        for name in MECHANISM_OPTIONS:
            if values["options"].get(name):
                settings.require_admitted(values["options"][name])
    values["accepts_cells"] = CELLS in request.headers.get("accept", "")
    values["own_mechanisms"] = list(settings.mechanisms)
    # Only the worker that reads the store gets its address with the password.
    values["store_address"] = None if settings.store is None else settings.store.reveal()
    return {name: value for name, value in values.items() if name in endpoint.parameters}


def read_query(request: Request, option_names: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the parameters of an address, as `n=1e6`, and its options, as `--of=margin`."""
    pairs = request.query_params.multi_items()
    words = read_words([f"{name}={value}" for name, value in pairs if not name.startswith("--")])
    dashed = read_words([f"{name}={value}" for name, value in pairs if name.startswith("--")])
    options = {name.removeprefix("--"): value for name, value in dashed.items()}
    unknown = next((name for name in options if name not in option_names), None)
    if unknown is not None:
        available = f"; there is {', '.join(f'--{name}' for name in option_names)}" if option_names else ""
        raise UsageError(f"--{unknown} is no option here{available}")
    return words, options


def _read_store_state(store: Secret | None) -> str:
    """Return a text that changes whenever the store does: cached answers are valid for one such text."""
    if store is None:
        return "none"
    from separatrix.sweeps.store import parse_address

    path = parse_address(store).path
    if path is None:
        return str(time.time_ns())  # a database server does not tell whether anything was written
    stats = []
    # SQLite writes to the log beside the database first; the database itself may stay as it is for long.
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            stat = file.stat()
        except OSError:
            continue
        if stat.st_size:
            stats.append(f"{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}")
    return " ".join(stats) or str(time.time_ns())
