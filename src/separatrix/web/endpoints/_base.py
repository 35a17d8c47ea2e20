"""The declaration of endpoints, and what their functions share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from separatrix.core.parameters import UsageError
from separatrix.exact.engines import STRENGTH, EngineRefusal, Sampling
from separatrix.web.workers import Slow, parameter_names

if TYPE_CHECKING:
    from separatrix.sweeps.store import Store

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")
Words = dict[str, str]
"""Parameters by name, as typed."""
Options = dict[str, str]
"""Options by name without dashes, as typed."""
ConstructionName = Annotated[str, Field(description="As in `separatrix list constructions`.", examples=["spike"])]
_MECHANISMS = "As in `separatrix list mechanisms`, "
MechanismNames = Annotated[
    str,
    Field(
        description=f"{_MECHANISMS}with commas between several; parameters as in `power:beta=4`.",
        examples=["softmax,linear"],
    ),
]
MechanismName = Annotated[str, Field(description=f"{_MECHANISMS}with its parameters.", examples=["power:beta=4"])]
TaskName = Annotated[str, Field(description="As in `separatrix list tasks`.")]
ENGINE_OPTION = {"engine": "auto, certified, closed, grouped or dense."}
SAMPLING_OPTIONS = {
    "draws": "Draws of the reader's signs, where an engine samples.",
    "seed": "Seed of the draws.",
    "confidence": "Of the interval around a sampled estimate.",
}
STORE_TIMEOUT = 20.0
"""Seconds that a store may take to answer."""


@dataclass(frozen=True)
class Endpoint:
    """A function, its address, and the description of its answer."""

    function: Callable[..., Any]
    path: str
    document: Any = None
    """The type of the JSON document; None for files."""
    options: Mapping[str, str] | None = None
    """The description of each option; None if the query is not read."""
    why_no_words: str = ""
    """The end of the message `n= is no option …`, where parameters of a construction are refused."""
    files: Collection[str] = ()
    """The media types of the files that are returned for download."""
    in_server: bool = False
    """Whether the function is fast enough to run in the server process."""
    refresh_seconds: float | None = None
    """The time after which an answer is computed again although the store did not change."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the values that the function takes."""
        return parameter_names(self.function)

    @property
    def tag(self) -> str:
        """The part of the page: the name of the module."""
        return self.function.__module__.rpartition(".")[2]


ENDPOINTS: list[Endpoint] = []
"""All endpoints of the modules that have been imported."""


def endpoint(path: str, document: Any = None, **settings: Any) -> Callable[[Function], Function]:
    """Declare a function as an endpoint; the settings are the other fields of `Endpoint`."""

    def register(function: Function) -> Function:
        ENDPOINTS.append(Endpoint(function, path, document, **settings))
        return function  # unchanged: workers import it by its name

    return register


def read_sampling(options: Options) -> Sampling:
    """Read how to sample."""
    default = Sampling()
    try:
        return Sampling(
            int(options.get("draws", default.draws)),
            int(options.get("seed", default.seed)),
            float(options.get("confidence", default.confidence)),
            options.get("dtype", default.dtype),
        )
    except ValueError:
        raise UsageError("--draws and --seed are whole numbers, --confidence is a number") from None


def solve_without_draws(engine: str, solve: Callable[..., Value]) -> Value:
    """Return the answer of the strongest engine that draws nothing; raise `Slow` if there is none.

    `solve` takes the name of an engine; `engine` is the only one that is tried, unless it is `auto`.
    """
    exact = [kind.name for kind in STRENGTH if not kind.draws]
    for name in exact if engine == "auto" else [engine]:
        if name in exact:
            try:
                return solve(engine=name)
            except EngineRefusal:
                if engine != "auto":
                    raise
    raise Slow


def open_for_reading(address: str) -> Store:
    """Open a store so that nothing can be written to it."""
    from separatrix.sweeps.store import open_store

    return open_store(address, timeout=STORE_TIMEOUT, read_only=True)
