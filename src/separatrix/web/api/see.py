"""See it happen: D0 and D1, what attention gives the tokens, which neurons fire."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from separatrix.analysis.cards.illustration import Illustration
from separatrix.core.documents import schema_type
from separatrix.web.api._base import ConstructionName, MechanismNames, TheDesk, documented, new_router
from separatrix.web.requests import read_query
from separatrix.web.workers import Call

router = new_router("see")
OPTIONS = {"seed": "Which draw of the reader's signs."}


@router.get(
    "/see/{construction}/{mechanisms:path}",
    response_model=schema_type(Illustration),
    openapi_extra=documented(OPTIONS),
)
async def see(
    construction: ConstructionName, mechanisms: MechanismNames, request: Request, desk: TheDesk
) -> Response:
    """The tokens of D0 and D1, what each mechanism gives them, and which neurons of one reader fire.

    n is moved to the nearest that the construction admits, so that it can be dragged; P(tells apart) is that
    of `verdict`, over all signs, where nothing has to be drawn for it.
    """
    words, chosen = read_query(request, OPTIONS)
    named = {"construction": construction, "mechanisms": desk.settings.admitted(mechanisms)}
    return await desk.answer(request, Call("see", {**named, "words": words, "options": chosen}))
