"""Separatrix tells you what an attention mechanism can and cannot tell apart.

It starts from the theorem of arXiv 2310.11685, of which only a summary was at hand; `ledger()` checks every
statement and tags it: stated in the summary, reconstructed, or ours.

>>> import separatrix as sx
>>> sx.verdict("spike", "linear", n=1000, d=102, m=12, a0="0.01", a1="1.2", b="0.2", c="0.1").word
'blind'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix import layers, testing
    from separatrix.cards import Card, assess
    from separatrix.cards.atlas import Atlas, atlas
    from separatrix.choices import Choice, choose
    from separatrix.claims import Ledger, ledger
    from separatrix.constructions import CONSTRUCTIONS
    from separatrix.costs import Bench, bench
    from separatrix.engines import Sampling
    from separatrix.evidence.found import Learned
    from separatrix.evidence.protocol import learn
    from separatrix.laws import Scaling, Scalings, scaling
    from separatrix.maps import Boundary, BoundaryCurve, Map, boundary
    from separatrix.maps import map as map
    from separatrix.mechanisms import MECHANISMS
    from separatrix.parameters import Grid, SeparatrixError, UsageError
    from separatrix.searches import Search, search
    from separatrix.store import results
    from separatrix.sweeps import Progress, sweep
    from separatrix.verdicts import Readers, Verdict, Verdicts, readers, verdict

__version__ = "0.1.0"

_HOME = {
    "Atlas": "separatrix.cards.atlas",
    "Bench": "separatrix.costs",
    "Boundary": "separatrix.maps",
    "BoundaryCurve": "separatrix.maps",
    "CONSTRUCTIONS": "separatrix.constructions",
    "Card": "separatrix.cards",
    "Choice": "separatrix.choices",
    "Grid": "separatrix.parameters",
    "Learned": "separatrix.evidence.found",
    "Ledger": "separatrix.claims",
    "MECHANISMS": "separatrix.mechanisms",
    "Map": "separatrix.maps",
    "Progress": "separatrix.sweeps",
    "Readers": "separatrix.verdicts",
    "Sampling": "separatrix.engines",
    "Scaling": "separatrix.laws",
    "Scalings": "separatrix.laws",
    "Search": "separatrix.searches",
    "SeparatrixError": "separatrix.parameters",
    "UsageError": "separatrix.parameters",
    "Verdict": "separatrix.verdicts",
    "Verdicts": "separatrix.verdicts",
    "assess": "separatrix.cards",
    "atlas": "separatrix.cards.atlas",
    "bench": "separatrix.costs",
    "boundary": "separatrix.maps",
    "choose": "separatrix.choices",
    "learn": "separatrix.evidence.protocol",
    "ledger": "separatrix.claims",
    "map": "separatrix.maps",
    "readers": "separatrix.verdicts",
    "results": "separatrix.store",
    "scaling": "separatrix.laws",
    "search": "separatrix.searches",
    "sweep": "separatrix.sweeps",
    "verdict": "separatrix.verdicts",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import separatrix` loads nothing heavy."""
    if name in ("layers", "testing"):
        return import_module(f"separatrix.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'separatrix' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Every public name, `map` as well, and what every module has."""
    kept = [name for name in globals() if name.startswith("__")]
    return sorted({*kept, *_HOME, *__all__})


__all__ = [  # but `map`, which is built into Python: write sx.map
    "CONSTRUCTIONS",
    "MECHANISMS",
    "Atlas",
    "Bench",
    "Boundary",
    "BoundaryCurve",
    "Card",
    "Choice",
    "Grid",
    "Learned",
    "Ledger",
    "Map",
    "Progress",
    "Readers",
    "Sampling",
    "Scaling",
    "Scalings",
    "Search",
    "SeparatrixError",
    "UsageError",
    "Verdict",
    "Verdicts",
    "assess",
    "atlas",
    "bench",
    "boundary",
    "choose",
    "layers",
    "learn",
    "ledger",
    "readers",
    "results",
    "scaling",
    "search",
    "sweep",
    "testing",
    "verdict",
]
