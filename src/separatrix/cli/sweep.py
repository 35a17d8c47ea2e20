"""`sweep` and `results`: read the words, call the library, show the answer."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.secrets import Secret

if TYPE_CHECKING:
    from separatrix.store import Damage

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
DEFAULT = "sqlite:///results.db"
"""As in `store`, which is too heavy to import for a help text; a test holds them together."""


def secret(given: str | Secret) -> Secret:
    """What was typed, as a Secret; a default is one already."""
    return given if isinstance(given, Secret) else Secret(given)


StoreUrl = Annotated[
    Secret,
    typer.Option(
        "--store",
        parser=secret,
        metavar="URL",
        show_default=DEFAULT,
        help="sqlite:///results.db, or postgresql+psycopg://user@host/database.",
    ),
]
HERE = Secret(DEFAULT)


def register(app: typer.Typer) -> None:
    """Attach the commands to the application."""
    app.command("sweep")(sweep)
    app.command("results")(results)


def sweep(
    plan: Annotated[
        str, typer.Argument(help="A TOML file, or a plan that comes with separatrix: paper, atlas.")
    ],
    store: StoreUrl = HERE,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine; one a core if not given.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Run on the Dask cluster with this scheduler: tcp://host:8786.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the cells and estimate the time.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try cells that failed again.")
    ] = False,
    cell_timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="A cell that takes longer has failed, and is ended."),
    ] = None,
    store_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Give up a store that does not answer for so long."),
    ] = 60.0,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="A mechanism of your own, module:attribute, that the plan may name."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute a plan's cells, and keep them.

    Cells that are in the store are not computed again. Stop it whenever you like (Ctrl-C); the same
    command goes on from there. Exit code 1: some cells failed; `results status=failed` says why.

    Example: separatrix sweep paper --store sqlite:///results.db
    """
    from separatrix.cli import show_sweep
    from separatrix.store import store_address
    from separatrix.sweeps.sweep import executor_for, find_plan
    from separatrix.sweeps.sweep import sweep as run

    address = store_address(store)
    read = find_plan(plan, allow or ())
    if dry_run:
        from separatrix.store import NoStore, open_store
        from separatrix.sweeps.estimate import estimate

        try:
            opened = open_store(address)
        except NoStore:
            opened = None
        with closing(executor_for(workers, scheduler, cell_timeout)) as executor, show_sweep.looking(as_json):
            found = estimate(read, opened, executor, executor.workers, retry_failed)
        show_sweep.estimate(read, found, address.shown, as_json)
        return
    with show_sweep.progress(as_json) as bar:
        done = run(
            read,
            address,
            workers=workers,
            scheduler=scheduler,
            retry_failed=retry_failed,
            cell_timeout=cell_timeout,
            store_timeout=store_timeout,
            tell=bar.tell,
            hear=bar.hear,
        )
    show_sweep.progressed(read, done, address.shown, as_json)
    raise typer.Exit(130 if done.stopped else 1 if done.failed or done.failed_before else 0)


def results(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE...", help="Conditions: mechanism=softmax n=1e3:1e6 verdict=blind"),
    ] = None,
    store: StoreUrl = HERE,
    sweep: Annotated[str | None, typer.Option(help="Only cells of this sweep: its name or number.")] = None,
    limit: Annotated[int | None, typer.Option(help="No more than so many cells.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_parquet: Annotated[
        bool, typer.Option("--parquet", help="Print Parquet, into a file or a pipe.")
    ] = False,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Write a file: .csv, .parquet or .json.")] = None,
) -> None:
    """Query stored cells, and export them.

    A condition is a value, several separated by commas, or a range low:high. Its name is a parameter of
    the construction, or one of: construction, mechanism, verdict, engine, asked, status, seed, draws,
    distinguish, margin, bits, fire_d0, fire_d1, seconds, dtype, delta, code. Exit code 1: the store is
    damaged; what is intact is shown, and a line on stderr says what is not.

    Example: separatrix results mechanism=softmax,linear n=1e3:1e6 verdict=blind --csv
    """
    from separatrix.cli import show_sweep
    from separatrix.files.writing import require_writable, whole_file
    from separatrix.parameters import UsageError, read_words
    from separatrix.store import open_store, read_filter, selected
    from separatrix.store.export import ENDINGS, write
    from separatrix.store.frame import require_known

    chosen = [name for name, given in zip(ENDINGS, (as_csv, as_json, as_parquet), strict=True) if given]
    if len(chosen) + (out is not None) > 1:
        raise UsageError("choose one of --csv, --json, --parquet and --out")
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} leaves nothing; it must be at least 1")
    if as_parquet and sys.stdout.isatty():
        raise UsageError("Parquet is not for terminals; write --out results.parquet")
    if out is not None:
        require_writable(out, ENDINGS)
    asked = read_filter(read_words(words or []))
    opened = open_store(store)
    number = None if sweep is None else opened.sweep_named(sweep)
    with selected(opened, asked, number, limit) as found:
        if found.count == 0:
            require_known(opened, asked)
        if out is not None:
            with whole_file(out) as file:
                write(found, out.suffix, file)
            typer.echo(f"{found.count:,} cells written to {out}")
        elif chosen:
            write(found, chosen[0], sys.stdout.buffer)
        else:
            show_sweep.results(found, limit)
    warn_of(found.scan.damage)


def warn_of(damage: Damage) -> None:
    """Say on stderr what of a store was left out, and end with exit code 1; nothing where all is well."""
    if damage:
        print(f"separatrix: warning: {damage.warning}", file=sys.stderr)
        raise typer.Exit(1)
