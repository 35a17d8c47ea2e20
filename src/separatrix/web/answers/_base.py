"""What answers share: their mark, JSON as the commands print it, and when to give way to the slow lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from separatrix.core.numbers.json import json_text
from separatrix.core.parameters import UsageError
from separatrix.core.result import Result
from separatrix.exact.engines import STRENGTH, EngineRefusal, Sampling
from separatrix.web.workers import Slow

Tell = Callable[[Mapping[str, Any]], None]
Function = TypeVar("Function", bound=Callable[..., bytes])
Words = Mapping[str, str]
"""Parameters or options, as they are typed."""
LEAST = {"width": 1, "heads": 1, "seed": 0}
"""Options of `assess` for one's own that are whole numbers."""
SLOW = "this is sampled, or takes many cells one by one"


def answer(function: Function) -> Function:
    """Mark a function as one that answers requests."""
    function.is_answer = True  # type: ignore[attr-defined]
    return function


def sampling_of(options: Words) -> Sampling:
    """How to sample, from options as they are typed."""
    usual = Sampling()
    try:
        return Sampling(
            int(options.get("draws", usual.draws)),
            int(options.get("seed", usual.seed)),
            float(options.get("confidence", usual.confidence)),
            options.get("dtype", usual.dtype),
        )
    except ValueError:
        raise UsageError("--draws and --seed are whole numbers, --confidence is a number") from None


def how_called(options: Words) -> dict[str, Any]:
    """Return how a user's own mechanism is called, from options as they are typed."""
    how: dict[str, Any] = {"scale": options["scale"]} if "scale" in options else {}
    for name, least in LEAST.items():
        if name in options:
            if not options[name].isdecimal() or int(options[name]) < least:
                raise UsageError(f"--{name}={options[name]} is no whole number from {least} on")
            how[name] = int(options[name])
    return how


def document(found: Result | Any) -> bytes:
    """The document of a result, as its command prints it with --json."""
    return json_text(found.as_json() if isinstance(found, Result) else found, indent=None).encode()


def written(ending: str, write: Callable[[Path], None]) -> bytes:
    """The bytes of the file that a command writes."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / f"file{ending}"
        write(out)
        return out.read_bytes()


def by_closed_form(engine: str, ask: Callable[[str], Any]) -> Any:
    """The answer of the strongest engine that draws nothing, `engine` or any for `auto`; else it is slow."""
    closed = [each.name for each in STRENGTH if not each.draws]
    tried = closed if engine == "auto" else [engine]
    for name in tried:
        if name in closed:
            try:
                return ask(name)
            except EngineRefusal:
                if engine != "auto":
                    raise
    raise Slow(SLOW)
