"""Arguments and options shared by several commands, and parsing of `name=value` words."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from separatrix.cli import completion, streams
from separatrix.core.errors import UsageError
from separatrix.core.secrets import Secret

ConstructionName = Annotated[
    str,
    Argument(
        help="What is to be told apart, for example spike (`list constructions`).",
        autocompletion=completion.constructions,
    ),
]
MechanismName = Annotated[
    str,
    Argument(
        help="How tokens attend: softmax, power:beta=4, or your own module:attribute.",
        autocompletion=completion.mechanism,
    ),
]
Words = Annotated[list[str] | None, Argument(metavar="NAME=VALUE...", help="Parameters, for example n=1000 a1=1.2")]
AxisWords = Annotated[
    list[str] | None, Argument(metavar="NAME=VALUE...", help="Parameters, one or two of them as ranges.")
]
EngineName = Annotated[
    str, Option(help="auto, certified, closed, grouped or dense.", autocompletion=completion.engines)
]
DeltaOption = Annotated[str, Option(help="P >= 1-delta distinguishes, P <= delta is blind.")]
DrawsOption = Annotated[int, Option(help="Draws of the reader's signs, for dense and grouped.")]
SeedOption = Annotated[int, Option(help="Seed of the draws.")]
ConfidenceOption = Annotated[float, Option(help="Coverage of the interval around a sampled estimate.")]
MechanismNames = Annotated[
    str,
    Argument(
        help="How tokens attend; several with commas between them: softmax,power:beta=4.",
        autocompletion=completion.mechanisms,
    ),
]
Workers = Annotated[int | None, Option(help="Number of processes on this machine (default: one per core).")]
Scheduler = Annotated[str | None, Option(help="Run on the Dask cluster with this scheduler: tcp://host:8786.")]
Allow = Annotated[list[str] | None, Option(help="A mechanism of your own, module:attribute, that the plan may load.")]
Device = Annotated[str | None, Option(help="Device of training runs of a plan: cuda, cuda:1, mps. Tested on cpu only.")]
Picture = Annotated[
    Path | None, Option(help="Write a page, a picture or data: .html, .png, .pdf, .svg, .csv or .json.")
]


def _reserve_stdout(context: Context, as_json: bool) -> bool:
    context.call_on_close(streams.restore_stdout)
    return streams.reserve_stdout(as_json)


AsJson = Annotated[bool, Option("--json", help="Print JSON instead of text.", callback=_reserve_stdout)]
DEFAULT = "sqlite:///results.db"
"""Equal to the default of `sweeps.store`, too slow to import for a help text; a test compares them."""


def secret(value: str | Secret) -> Secret:
    """Wrap a typed URL in a Secret; defaults already are Secrets."""
    return value if isinstance(value, Secret) else Secret(value)


StoreUrl = Annotated[
    Secret,
    Option(
        "--store",
        parser=secret,
        metavar="URL",
        show_default=DEFAULT,
        help="sqlite:///results.db, or postgresql+psycopg://user@host/database.",
    ),
]
HERE = Secret(DEFAULT)
POSITIONAL = {"construction", "mechanism", "mechanisms", "words"}
"""Names of positional arguments."""


def require_output(out: Path | None, kind: str) -> None:
    """Reject a path that cannot be written, or whose ending is no format of this kind of result."""
    if out is not None:
        from separatrix.core.files.writing import require_writable
        from separatrix.pages.plots import suffixes

        require_writable(out, suffixes(kind))


def read_question(
    command: Callable[..., None], construction: str, mechanisms: str, words: list[str] | None
) -> tuple[str, str, dict[str, str]]:
    """Return the construction, the mechanisms and the `name=value` words of a command as a dictionary.

    The name of an option of the command is rejected, unless the construction has a parameter of that name.
    """
    from separatrix.constructions import construction_named
    from separatrix.core.parameters import read_words
    from separatrix.mechanisms import MECHANISMS

    construction, mechanisms = _sort_names(construction, mechanisms)
    words = words or []
    stray = next((word for word in words if word.partition(":")[0] in MECHANISMS), None)
    if stray is not None:
        raise UsageError(f"{stray} stands among the parameters; several mechanisms are joined by commas")
    # An option without its dashes (engine=dense) would otherwise be reported as an unknown parameter.
    options = {name.removeprefix("as_").rstrip("_") for name in signature(command).parameters} - POSITIONAL
    return construction, mechanisms, read_words(words, construction_named(construction).schema.model_fields, options)


def _sort_names(construction: str, mechanisms: str) -> tuple[str, str]:
    """Return construction and mechanisms; swap them, with a notice on stderr, if typed in the other order."""
    from separatrix.constructions import CONSTRUCTIONS

    # `verdict spike n=1000` lacks a mechanism; a mechanism's own parameters follow a colon: power:beta=4.
    if "=" in mechanisms.partition(":")[0]:
        missing = "mechanism" if construction in CONSTRUCTIONS else "construction or the mechanism"
        raise UsageError(f"the {missing} is missing before {mechanisms}; write for example: spike softmax")
    if construction in CONSTRUCTIONS or mechanisms not in CONSTRUCTIONS:
        return construction, mechanisms
    streams.queue_line(f"read as {mechanisms} {construction}: the construction comes first")
    return mechanisms, construction
