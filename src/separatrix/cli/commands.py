"""Every command: read the words, call the library, show the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli import maps, readers, report, scaling, search, store, sweep, worker

Words = Annotated[
    list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Parameters, for example n=1000 a1=1.2")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Construction = Annotated[
    str, typer.Argument(help="What is to be told apart, for example spike (`list constructions`).")
]
Mechanism = Annotated[
    str, typer.Argument(help="How tokens attend: softmax, power:beta=4, or your own module:attribute.")
]


OPTIONS = {"certificate", "confidence", "delta", "draws", "dtype", "engine", "json", "noise", "seed"}
"""Options of `verdict` that are easily typed as parameters."""


def register(app: typer.Typer) -> None:
    """Attach the commands to the application."""
    app.command("verdict")(verdict)
    app.command("check")(check)
    readers.register(app)
    maps.register(app)
    scaling.register(app)
    search.register(app)
    worker.register(app)
    report.register(app)
    sweep.register(app)
    store.register(app)
    app.command("reproduce")(reproduce)
    app.command("assess")(assess)
    app.command("atlas")(atlas)
    app.command("bench")(bench)
    app.command("list")(list_)
    app.callback(invoke_without_command=True)(version)


def version(
    context: typer.Context,
    show: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """What an attention mechanism can and cannot tell apart."""
    if show:
        from separatrix import __version__

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def verdict(
    construction: Construction,
    mechanism: Mechanism,
    words: Words = None,
    engine: Annotated[str, typer.Option(help="auto, certified, exact, grouped or dense.")] = "auto",
    certificate: Annotated[
        Path | None, typer.Option(help="Write a certificate of the exact answer here.")
    ] = None,
    delta: Annotated[str, typer.Option(help="P >= 1-delta distinguishes, P <= delta is blind.")] = "0.01",
    noise: Annotated[
        str | None,
        typer.Option(help="Add the AUC under Gaussian noise of this sd, in the unit of the margin."),
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws of the reader's signs, for dense and grouped.")] = 400,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    confidence: Annotated[float, typer.Option(help="Of the interval around a sampled estimate.")] = 0.95,
    dtype: Annotated[
        str, typer.Option(help="float64, float32, float16 or bfloat16, for dense and grouped.")
    ] = "float64",
    as_json: AsJson = False,
) -> None:
    """Does MECHANISM tell the two labels of CONSTRUCTION apart?

    Example: separatrix verdict spike softmax n=1000 d=102 m=12 a0=0.01 a1=1.2 b=0.2 c=0.1
    """
    from separatrix.cli import show
    from separatrix.constructions import construction_named
    from separatrix.engines import Sampling, engine_named
    from separatrix.files.writing import require_writable
    from separatrix.parameters import UsageError, read_words
    from separatrix.verdicts import certify, write_certificate
    from separatrix.verdicts import verdict as run

    parameters = read_words(words or [], construction_named(construction).schema.model_fields, OPTIONS)
    sampling = Sampling(draws, seed, confidence, dtype)
    engine_named("certified" if certificate is not None else engine).refuse_unused(sampling)
    if certificate is not None and not engine_named(engine).covers("certified"):
        raise UsageError(f"only the certified engine writes certificates; leave out --engine {engine}")
    if certificate is not None:
        require_writable(certificate)
    found = run(
        construction,
        mechanism,
        parameters,
        engine="certified" if certificate is not None else engine,
        delta=delta,
        noise_sd=noise,
        sampling=sampling,
    )
    if certificate is not None:
        write_certificate(certificate, certify(found.construction, found.mechanism, found.delta)[1])
    show.verdict(found, as_json)
    if certificate is not None and not as_json:
        typer.echo(f"certificate written; verify it with: separatrix check {certificate}")


def check(
    file: Annotated[Path, typer.Argument(help="A certificate written by verdict or boundary --certificate.")],
    as_json: AsJson = False,
) -> None:
    """Verify a certificate independently.

    Separate code and separate arithmetic recompute every statement in it.
    Exit code 0: it holds; 1: it does not; 2: it is no certificate.
    """
    from separatrix.checker import check_file
    from separatrix.cli import show

    report = check_file(file)
    show.check(report, file, as_json)
    raise typer.Exit(0 if report.holds else 1)


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the report, figures, ledger and tables.")] = Path(
        "reproduction"
    ),
    as_json: AsJson = False,
) -> None:
    """The paper's theorem, as far as its summary goes: ledger, sweeps, figures, report.

    Each statement has its tag: stated in the summary of the paper, reconstructed, or ours.

    Writes report.html, which opens offline, the figures as PNG and PDF, ledger.json, sweep CSVs, and
    results.db, a store of the sweeps' cells, which are not computed again into the same folder.
    """
    from separatrix.cli import show
    from separatrix.reports.reproduce import reproduce as run

    result = run(out, quiet=as_json)
    show.reproduction(result, as_json)
    raise typer.Exit(0 if result.holds else 1)


Against = Annotated[str, typer.Option(help="Mechanisms to compare with, separated by commas.")]


def assess(
    mechanism: Annotated[str, typer.Argument(help="A name, or module:attribute of your own.")],
    against: Against = "",
    out: Annotated[Path | None, typer.Option(help="Write the card as a page: card.html.")] = None,
    as_json: AsJson = False,
) -> None:
    """Report card: contract, verdicts, likeness, cost.

    Exit code 0: the contract is kept; 1: it is broken, or the mechanism raised on the way, and the card
    names the check; 2: there is nothing to assess (no such module or attribute, it does not import, it
    cannot be called with q, k and v).

    Example: separatrix assess my_file:MyAttention --against softmax,linear
    """
    from separatrix.cards import assess as run
    from separatrix.cli import show
    from separatrix.files.writing import require_writable
    from separatrix.mechanisms.load import mechanism_from
    from separatrix.reports import card

    if out is not None:
        require_writable(out, card.ENDINGS)
    one = mechanism_from(mechanism)
    others = [mechanism_from(name) for name in against.split(",") if name]
    with show.working(as_json) as tell:
        found = run(one, others, tell)
    if out is not None:
        card.write(found, out)
    show.card(found, as_json)
    raise typer.Exit(0 if found.holds else 1)


def atlas(
    out: Annotated[Path | None, typer.Option(help="Write it: .html, .png, .pdf, .csv or .json.")] = None,
    as_json: AsJson = False,
) -> None:
    """Every mechanism on every construction.

    One letter a cell, and how P is known; the page has the intervals. Takes minutes, on all cores.
    """
    import os

    from separatrix.cards.atlas import atlas as run
    from separatrix.cli import show
    from separatrix.files.writing import require_writable
    from separatrix.reports import atlas as page

    if out is not None:
        require_writable(out, page.ENDINGS)
    with show.counting(as_json) as tell:
        found = run(tell=tell, workers=os.cpu_count() or 1)
    if out is not None:
        page.write(found, out)
    show.atlas(found, as_json)


def bench(
    mechanisms: Annotated[list[str] | None, typer.Argument(help="Which; all if none is named.")] = None,
    as_json: AsJson = False,
) -> None:
    """Cost on this machine: time, memory, operations.

    A mechanism whose fast form does not agree with its definition gets no numbers.
    """
    from separatrix.cli import show
    from separatrix.costs import bench as run
    from separatrix.mechanisms.load import mechanism_from

    chosen = [mechanism_from(name) for name in mechanisms or []]
    with show.working(as_json) as tell:
        found = run(chosen or None, tell)
    show.bench(found, as_json)


def list_(
    what: Annotated[str, typer.Argument(help="mechanisms, constructions, claims, plans or sweeps")],
    lattice: Annotated[
        bool, typer.Option("--lattice", help="With mechanisms: which is a special case of which.")
    ] = False,
    store: sweep.StoreUrl = sweep.HERE,
    as_json: AsJson = False,
) -> None:
    """List mechanisms, constructions, claims, plans, sweeps."""
    from separatrix.cli import show, show_sweep
    from separatrix.parameters import UsageError, require_known

    def sweeps(as_json: bool) -> None:
        from separatrix.store import open_store
        from separatrix.store.sweep_list import list_sweeps

        found, damage = list_sweeps(open_store(store))
        show_sweep.sweeps(found, as_json)
        sweep.warn_of(damage)

    lists = {
        "mechanisms": show.mechanisms,
        "constructions": show.constructions,
        "claims": show.claims,
        "plans": show_sweep.plans,
        "sweeps": sweeps,
    }
    require_known("list of", what, lists)
    if lattice and what != "mechanisms":
        raise UsageError(f"{what} have no lattice; write: separatrix list mechanisms --lattice")
    (show.lattice if lattice else lists[what])(as_json)
