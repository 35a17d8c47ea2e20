"""`scaling`: read the words, call the library, show the answer."""

from __future__ import annotations

from typing import Annotated

import typer

from separatrix.cli.maps import AsJson, Confidence, Construction, Draws, Engine, Seed, Words

OPTIONS = {"confidence", "draws", "engine", "json", "of", "seed"}
"""Options that are easily typed as parameters."""


def register(app: typer.Typer) -> None:
    """Attach the command to the application."""
    app.command("scaling")(scaling)


def scaling(
    construction: Construction,
    mechanisms: Annotated[str, typer.Argument(help="One; several: softmax,linear; or all: gives a table.")],
    words: Words = None,
    of: Annotated[
        str,
        typer.Option(
            help="margin, bits, miss (1-P), critical_n, blind_bf16 (fp16, fp32, fp64), "
            "seconds, peak_bytes, flops or state_bytes."
        ),
    ] = "margin",
    engine: Engine = "auto",
    draws: Draws = 400,
    seed: Seed = 0,
    confidence: Confidence = 0.95,
    as_json: AsJson = False,
) -> None:
    """How a quantity grows: an exponent, if it is a power law.

    The parameter that grows is start:stop:count, or start:stop:count:log, of three points or more.
    critical_n is the n at which P passes 1/2, blind_fp32 the n from which on float32 sees no difference.

    Example: separatrix scaling spike linear n=1e3:1e9:7:log d=102 m=12 a0=0.01 a1=1.2 b=0.2 c=0.1
    """
    from separatrix.cli import show, show_scaling
    from separatrix.constructions import construction_named
    from separatrix.engines import Sampling
    from separatrix.laws import scaling as run
    from separatrix.laws import table
    from separatrix.parameters import UsageError, read_words, split_mechanisms

    parameters = read_words(words or [], construction_named(construction).schema.model_fields, OPTIONS)
    chosen = None if mechanisms == "all" else split_mechanisms(mechanisms)
    if chosen == []:
        raise UsageError("scaling needs a mechanism; write for example softmax, softmax,linear or all")
    sampling = Sampling(draws, seed, confidence)
    with show.working(as_json) as tell:
        if chosen is not None and len(chosen) == 1:
            found = run(
                construction, chosen[0], parameters, of=of, engine=engine, sampling=sampling, tell=tell
            )
        else:
            rows = table(construction, parameters, chosen, of=of, engine=engine, sampling=sampling, tell=tell)
    if chosen is not None and len(chosen) == 1:
        show_scaling.scaling(found, as_json)
    else:
        show_scaling.table(rows, construction, of, parameters, as_json)
