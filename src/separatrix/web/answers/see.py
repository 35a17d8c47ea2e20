"""What is to be seen at one point: tokens, attention, neurons."""

from __future__ import annotations

from collections.abc import Mapping

from separatrix.analysis.cards.illustration import SEED, illustrate_at
from separatrix.core.parameters import UsageError
from separatrix.web.answers._base import Tell, answer, document


@answer
def see(
    construction: str,
    mechanisms: str,
    words: Mapping[str, str],
    options: Mapping[str, str],
    quick: bool,
    tell: Tell,
) -> bytes:
    """The picture of D0 and D1 at a point, with one draw of the reader's signs."""
    given = options.get("seed", str(SEED))
    if not given.isdecimal() or not given.isascii():
        raise UsageError(f"--seed={given} is not a whole number")
    return document(illustrate_at(construction, mechanisms, words, seed=int(given)).as_json())
