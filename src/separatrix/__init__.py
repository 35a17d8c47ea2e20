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

from separatrix.core import rendering

if TYPE_CHECKING:
    from separatrix import layers, testing
    from separatrix.analysis.cards.assessment import assess
    from separatrix.analysis.cards.atlas import Atlas, atlas
    from separatrix.analysis.cards.card import Card
    from separatrix.analysis.choose import Choice, choose
    from separatrix.analysis.costs.cost import bench
    from separatrix.analysis.costs.curves import Bench
    from separatrix.analysis.evidence.protocol import learn
    from separatrix.analysis.evidence.training_result import TrainingResult
    from separatrix.analysis.laws import Scaling, Scalings, scaling
    from separatrix.analysis.maps import Boundary, BoundaryCurve, Map, boundary
    from separatrix.analysis.maps import map as map
    from separatrix.analysis.search import Search, search
    from separatrix.analysis.weights import Weights, weights
    from separatrix.claims import Ledger, ledger
    from separatrix.constructions import CONSTRUCTIONS
    from separatrix.core.parameters import Grid, SeparatrixError, UsageError
    from separatrix.exact.engines import Sampling
    from separatrix.exact.proofs import Proof, Proofs, prove
    from separatrix.exact.verdicts import Readers, Verdict, Verdicts, readers, verdict
    from separatrix.mechanisms import MECHANISMS
    from separatrix.sweeps.progress import Progress
    from separatrix.sweeps.store import results
    from separatrix.sweeps.sweep import sweep

__version__ = "0.1.0"


def _load_renderer() -> rendering.Renderer:
    """Import the package that draws results, when the first picture is asked for."""
    from separatrix.pages import plots

    return plots


rendering.register(_load_renderer)

_HOME = {
    "Atlas": "separatrix.analysis.cards.atlas",
    "Bench": "separatrix.analysis.costs.curves",
    "Boundary": "separatrix.analysis.maps",
    "BoundaryCurve": "separatrix.analysis.maps",
    "CONSTRUCTIONS": "separatrix.constructions",
    "Card": "separatrix.analysis.cards.card",
    "Choice": "separatrix.analysis.choose",
    "Grid": "separatrix.core.parameters",
    "Ledger": "separatrix.claims",
    "MECHANISMS": "separatrix.mechanisms",
    "Map": "separatrix.analysis.maps",
    "Progress": "separatrix.sweeps.progress",
    "Proof": "separatrix.exact.proofs",
    "Proofs": "separatrix.exact.proofs",
    "Readers": "separatrix.exact.verdicts",
    "Sampling": "separatrix.exact.engines",
    "Scaling": "separatrix.analysis.laws",
    "Scalings": "separatrix.analysis.laws",
    "Search": "separatrix.analysis.search",
    "SeparatrixError": "separatrix.core.parameters",
    "TrainingResult": "separatrix.analysis.evidence.training_result",
    "UsageError": "separatrix.core.parameters",
    "Verdict": "separatrix.exact.verdicts",
    "Verdicts": "separatrix.exact.verdicts",
    "Weights": "separatrix.analysis.weights",
    "assess": "separatrix.analysis.cards.assessment",
    "atlas": "separatrix.analysis.cards.atlas",
    "bench": "separatrix.analysis.costs.cost",
    "boundary": "separatrix.analysis.maps",
    "choose": "separatrix.analysis.choose",
    "learn": "separatrix.analysis.evidence.protocol",
    "ledger": "separatrix.claims",
    "map": "separatrix.analysis.maps",
    "prove": "separatrix.exact.proofs",
    "readers": "separatrix.exact.verdicts",
    "results": "separatrix.sweeps.store",
    "scaling": "separatrix.analysis.laws",
    "search": "separatrix.analysis.search",
    "sweep": "separatrix.sweeps.sweep",
    "verdict": "separatrix.exact.verdicts",
    "weights": "separatrix.analysis.weights",
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
    "Ledger",
    "Map",
    "Progress",
    "Proof",
    "Proofs",
    "Readers",
    "Sampling",
    "Scaling",
    "Scalings",
    "Search",
    "SeparatrixError",
    "TrainingResult",
    "UsageError",
    "Verdict",
    "Verdicts",
    "Weights",
    "assess",
    "atlas",
    "bench",
    "boundary",
    "choose",
    "layers",
    "learn",
    "ledger",
    "prove",
    "readers",
    "results",
    "scaling",
    "search",
    "sweep",
    "testing",
    "verdict",
    "weights",
]
