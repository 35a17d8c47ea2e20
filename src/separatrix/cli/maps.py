"""`map` and `boundary`: read the words, call the library, show or write the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Words = Annotated[
    list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Parameters, and the axes among them.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Construction = Annotated[str, typer.Argument(help="What is to be told apart, for example spike.")]
Engine = Annotated[str, typer.Option(help="auto, certified, exact, grouped or dense.")]
Draws = Annotated[int, typer.Option(help="Draws of the reader's signs, for dense and grouped.")]
Seed = Annotated[int, typer.Option(help="Seed of the draws.")]
Confidence = Annotated[float, typer.Option(help="Of the interval around a sampled estimate.")]

OPTIONS = {
    *("at", "certificate", "confidence", "difference", "draws", "engine", "json", "of", "out", "over"),
    *("scan", "seed", "tolerance"),
}
"""Options that are easily typed as parameters."""


def register(app: typer.Typer) -> None:
    """Attach the commands to the application."""
    app.command("map")(map_)
    app.command("boundary")(boundary)


def map_(
    construction: Construction,
    mechanisms: Annotated[str, typer.Argument(help="One, or several: softmax,linear,power:beta=4.")],
    words: Words = None,
    of: Annotated[str, typer.Option(help="distinguish, fire_d0, fire_d1, margin or bits.")] = "distinguish",
    difference: Annotated[
        bool, typer.Option("--difference", help="Of two mechanisms: the first less the second.")
    ] = False,
    engine: Engine = "auto",
    draws: Draws = 400,
    seed: Seed = 0,
    confidence: Confidence = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="Write it: .html, .png, .pdf, .npz, .csv, .parquet or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A quantity over two parameters, as a picture.

    An axis is start:stop:count, or start:stop:count:log for even spacing in the logarithm.

    Example: separatrix map spike softmax,linear a1=0.5:1.5:400 n=1e3:1e18:400:log
    d=102 m=12 a0=0.01 b=0.2 c=0.1 --out map.html
    """
    from separatrix.cli import show_maps
    from separatrix.constructions import construction_named
    from separatrix.engines import Sampling
    from separatrix.files.writing import require_writable
    from separatrix.maps import map as run
    from separatrix.parameters import read_words, split_mechanisms

    parameters = read_words(words or [], construction_named(construction).schema.model_fields, OPTIONS)
    if out is not None:
        from separatrix.reports.maps import MAP_ENDINGS

        require_writable(out, MAP_ENDINGS)
    with show_maps.progress(as_json) as tell:
        found = run(
            construction,
            split_mechanisms(mechanisms),
            parameters,
            of=of,
            engine=engine,
            difference=difference,
            sampling=Sampling(draws, seed, confidence),
            tell=tell,
        )
    if out is not None:
        from separatrix.reports.maps import write_map

        write_map(found, out)
    show_maps.map_(found, out, as_json)


def boundary(
    construction: Construction,
    mechanism: Annotated[str, typer.Argument(help="How tokens attend, for example softmax.")],
    words: Words = None,
    at: Annotated[str, typer.Option(help="The level of P[distinguishes] to be passed.")] = "0.5",
    over: Annotated[
        str | None, typer.Option(help="A second parameter, name=start:stop:count[:log]: gives a curve.")
    ] = None,
    engine: Engine = "auto",
    scan: Annotated[int | None, typer.Option(help="How many values of the range to look at first.")] = None,
    tolerance: Annotated[
        str | None, typer.Option(help="How close the ends must come, relative to their size.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Write a certificate of both ends here.")] = None,
    draws: Draws = 400,
    seed: Seed = 0,
    confidence: Confidence = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="With --over, write it: .html, .png, .pdf, .csv or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Where a mechanism comes to tell the labels apart.

    The range to search is start:stop of one parameter. Every crossing the scan shows is narrowed down.

    Example: separatrix boundary spike softmax a1=0.5:1.5 n=1e6 d=102 m=12 a0=0.01 b=0.2 c=0.1
    """
    from separatrix.cli import show, show_maps
    from separatrix.constructions import construction_named
    from separatrix.engines import Sampling, engine_named
    from separatrix.files.writing import require_writable
    from separatrix.maps import boundary as run
    from separatrix.maps import boundary_curve, certify_boundary
    from separatrix.parameters import UsageError, read_words
    from separatrix.verdicts import write_certificate

    parameters = read_words(words or [], construction_named(construction).schema.model_fields, OPTIONS)
    if out is not None and over is None:
        raise UsageError(
            "--out draws a curve over a second parameter; add --over n=1e3:1e12:10:log, or use --json"
        )
    if certificate is not None and (over is not None or not engine_named(engine).covers("certified")):
        reason = "a curve has none" if over is not None else f"the {engine} engine proves nothing"
        raise UsageError(f"--certificate is for one boundary by the certified engine; {reason}")
    if certificate is not None:
        require_writable(certificate)
    sampling = Sampling(draws, seed, confidence)
    if over is None:
        found = run(
            construction,
            mechanism,
            parameters,
            probability=at,
            engine="certified" if certificate is not None else engine,
            scan=scan,
            tolerance=tolerance,
            sampling=sampling,
        )
        if certificate is not None:
            write_certificate(certificate, certify_boundary(found))
        show_maps.boundary(found, certificate, as_json)
        return
    if out is not None:
        from separatrix.reports.maps import CURVE_ENDINGS

        require_writable(out, CURVE_ENDINGS)
    with show.working(as_json) as tell:
        curve = boundary_curve(
            construction,
            mechanism,
            parameters,
            over,
            at=at,
            engine=engine,
            scan=scan,
            tolerance=tolerance,
            sampling=sampling,
            tell=tell,
        )
    if out is not None:
        from separatrix.reports.maps import write_curve

        write_curve(curve, out)
    show_maps.curve(curve, out, as_json)
