"""What is to be told apart: pairs of token families with validated parameters."""

from separatrix.constructions._base import (
    Amplitudes,
    BlockModel,
    Construction,
    Exchangeable,
    Label,
    Presence,
    Probe,
    Row,
    Tokens,
)
from separatrix.constructions._exact import Description, ExactConstruction, Kind
from separatrix.constructions.averaging import Averaging
from separatrix.constructions.critical import Critical
from separatrix.constructions.cross import Cross
from separatrix.constructions.dispersion import Dispersion
from separatrix.constructions.duplication import Duplication
from separatrix.constructions.injectivity import Injectivity
from separatrix.constructions.level import Level
from separatrix.constructions.location import Location
from separatrix.constructions.majority import Majority
from separatrix.constructions.parity import Parity
from separatrix.constructions.plain import Plain
from separatrix.constructions.recall import Recall
from separatrix.constructions.regression import Regression
from separatrix.constructions.rough import Rough
from separatrix.constructions.routing import Routing
from separatrix.constructions.spike import Spike
from separatrix.constructions.spikes import Spikes
from separatrix.parameters import UsageError, nearest

ALL: tuple[type[Construction], ...] = (
    Spike,
    Plain,
    Cross,
    Injectivity,
    Duplication,
    Routing,
    Parity,
    Dispersion,
    Critical,
    Averaging,
    Location,
    Regression,
    Recall,
    Majority,
    Spikes,
    Level,
    Rough,
)
CONSTRUCTIONS: dict[str, type[Construction]] = {each.name: each for each in ALL}
"""Every construction, by name."""


def construction_named(name: str) -> type[Construction]:
    """The construction called `name`, or a UsageError that lists them."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of a construction; write for example 'spike'")
    if name not in CONSTRUCTIONS:
        known = list(CONSTRUCTIONS)
        raise UsageError(
            f"there is no construction {name}{nearest(name, known)}; there are: {', '.join(known)}"
        )
    return CONSTRUCTIONS[name]


__all__ = [
    "CONSTRUCTIONS",
    "Amplitudes",
    "Averaging",
    "BlockModel",
    "Construction",
    "Critical",
    "Cross",
    "Description",
    "Dispersion",
    "Duplication",
    "ExactConstruction",
    "Exchangeable",
    "Injectivity",
    "Kind",
    "Label",
    "Level",
    "Location",
    "Majority",
    "Parity",
    "Plain",
    "Presence",
    "Probe",
    "Recall",
    "Regression",
    "Rough",
    "Routing",
    "Row",
    "Spike",
    "Spikes",
    "Tokens",
    "construction_named",
]
