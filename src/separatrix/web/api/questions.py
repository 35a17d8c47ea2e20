"""Verdicts, maps, boundaries, certificates."""

from __future__ import annotations

import re
from typing import Any

from fastapi import Request
from starlette.responses import Response

from separatrix.analysis.maps import Boundary, BoundaryCurve, Map
from separatrix.core.documents import schema_type
from separatrix.core.errors import UsageError
from separatrix.core.parameters import split_mechanisms
from separatrix.exact.verdicts import Verdict, Verdicts
from separatrix.web.api._base import ConstructionName, MechanismNames, TheDesk, documented, new_router
from separatrix.web.requests import CELLS, JSON, read_query
from separatrix.web.workers import Call

router = new_router("questions")
LONGEST_NAME = 100
DRAWN = {
    "draws": "Draws of the reader's signs, where an engine samples.",
    "seed": "Seed of the draws.",
    "confidence": "Of the interval around a sampled estimate.",
}
ENGINE = {"engine": "auto, certified, closed, grouped or dense."}
VERDICT = {
    **ENGINE,
    "delta": "P >= 1-delta distinguishes, P <= delta is blind.",
    **DRAWN,
    "dtype": "Number format.",
}
MAP = {
    "of": "distinguish, fire_d0, fire_d1, margin or bits.",
    "difference": "yes: the first of two mechanisms less the second.",
    **ENGINE,
    **DRAWN,
}
FILES = {
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".csv": "text/csv",
    ".json": JSON,
}
MAP_FILE = {**MAP, "out": f"The kind of file: {', '.join(FILES)}."}
BOUNDARY = {
    "at": "The level of P(tells apart).",
    "over": "A second parameter: gives a curve.",
    **ENGINE,
    **DRAWN,
}


CHECKS = {
    "verdicts": "check_verdicts",
    "certificate": "check_verdicts",
    "boundaries": "check_boundary",
    **dict.fromkeys(("map_json", "map_cells", "map_file"), "check_map"),
}
"""The function that refuses wrong arguments of a call at once."""


def _call(name: str, construction: str, mechanisms: str, request: Request, options: dict[str, str]) -> Call:
    words, chosen = read_query(request, options)
    arguments = {"construction": construction, "mechanisms": mechanisms, "words": words, "options": chosen}
    return Call(name, arguments, CHECKS[name])


@router.get(
    "/verdict/{construction}/{mechanisms:path}",
    response_model=schema_type(Verdict | Verdicts.document_type()),
    openapi_extra=documented(VERDICT),
)
async def verdict(
    construction: ConstructionName, mechanisms: MechanismNames, request: Request, desk: TheDesk
) -> Response:
    """What `separatrix verdict --json` prints."""
    chosen = desk.settings.admitted(mechanisms)
    return await desk.answer(request, _call("verdicts", construction, chosen, request, VERDICT))


@router.get(
    "/map/{construction}/{mechanisms:path}", response_model=schema_type(Map), openapi_extra=documented(MAP)
)
async def map_(
    construction: ConstructionName, mechanisms: MechanismNames, request: Request, desk: TheDesk
) -> Response:
    """What `separatrix map --json` prints.

    Who accepts `application/vnd.separatrix.cells` gets its numbers in binary. A map without a closed form is
    sent as lines of progress, the result last, to who accepts `application/x-ndjson`.
    """
    chosen = desk.settings.admitted(mechanisms)
    packed = CELLS in request.headers.get("accept", "")
    call = _call("map_cells" if packed else "map_json", construction, chosen, request, MAP)
    return await desk.answer(request, call, CELLS if packed else JSON)


@router.get(
    "/files/map/{construction}/{mechanisms:path}",
    response_class=Response,
    responses={200: {"content": {media: {} for media in FILES.values()}}},
    openapi_extra=documented(MAP_FILE),
)
async def map_file(
    construction: ConstructionName, mechanisms: MechanismNames, request: Request, desk: TheDesk
) -> Response:
    """The file that `separatrix map --out` writes."""
    chosen = desk.settings.admitted(mechanisms)
    call = _call("map_file", construction, chosen, request, MAP_FILE)
    ending = call.arguments["options"].setdefault("out", ".png")
    if ending not in FILES:
        raise UsageError(f"--out={ending} is no kind of file here; there is {', '.join(FILES)}")
    return await desk.answer(request, call, FILES[ending], f"map{ending}")


@router.get(
    "/boundary/{construction}/{mechanism:path}",
    response_model=schema_type(Boundary | BoundaryCurve),
    openapi_extra=documented(BOUNDARY),
)
async def boundary(
    construction: ConstructionName, mechanism: MechanismNames, request: Request, desk: TheDesk
) -> Response:
    """What `separatrix boundary --json` prints."""
    chosen = _one(desk.settings.admitted(mechanism))
    return await desk.answer(request, _call("boundaries", construction, chosen, request, BOUNDARY))


@router.get(
    "/files/certificate/{construction}/{mechanism:path}",
    response_class=Response,
    responses={200: {"content": {JSON: {}}}},
    openapi_extra=documented({"delta": VERDICT["delta"]}),
)
async def certificate(
    construction: ConstructionName, mechanism: MechanismNames, request: Request, desk: TheDesk
) -> Response:
    """The file that `separatrix verdict --certificate` writes, for `separatrix check`."""
    chosen = _one(desk.settings.admitted(mechanism))
    call = _call("certificate", construction, chosen, request, {"delta": ""})
    return await desk.answer(request, call, JSON, _file_name("certificate", construction, chosen))


def _file_name(*words: str) -> str:
    """The name of a file about these, of letters that every system takes.

    >>> _file_name("certificate", "spike", "power:beta=4")
    'certificate-spike-power-beta-4.json'
    """
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(words)).strip("-.")
    return f"{plain[:LONGEST_NAME]}.json"


def _one(mechanism: str) -> Any:
    if len(split_mechanisms(mechanism)) > 1:
        raise UsageError(f"{mechanism} are several mechanisms; ask for each by itself")
    return mechanism
