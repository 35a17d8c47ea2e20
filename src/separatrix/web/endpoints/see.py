"""A picture of one point: D0 and D1, the output of attention, the neurons that fire."""

from __future__ import annotations

from separatrix.analysis.cards.illustration import SEED, Illustration, illustrate_at
from separatrix.core.parameters import UsageError
from separatrix.web.endpoints._base import ConstructionName, MechanismNames, Options, Words, endpoint


@endpoint("/see/{construction}/{mechanisms:path}", Illustration, options={"seed": "Which draw of the reader's signs."})
def illustrate_point(
    construction: ConstructionName, mechanisms: MechanismNames, words: Words, options: Options
) -> Illustration:
    """The tokens of D0 and D1, the output of each mechanism, and the neurons of one reader that fire.

    n is moved to the nearest value that the construction admits, so that it can be dragged. P(tells apart) is
    that of `verdict`, over all signs; it is null where it would have to be sampled.
    """
    seed = options.get("seed", str(SEED))
    # isdecimal() alone admits digits of other scripts.
    if not (seed.isdecimal() and seed.isascii()):
        raise UsageError(f"--seed={seed} is not a whole number")
    return illustrate_at(construction, mechanisms, words, seed=int(seed))
