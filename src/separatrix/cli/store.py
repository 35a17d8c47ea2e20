"""`store check`, `repair`, `upgrade` and `backup`: read the words, call the library, show the answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import HERE, AsJson, StoreUrl
from separatrix.cli.terminal import console, plain, print_json

if TYPE_CHECKING:
    from separatrix.sweeps.store.maintenance import Health

commands = typer.Typer(help="Look a store over, save it, bring it up to date, copy it.", no_args_is_help=True)


@commands.command()
def check(url: StoreUrl = HERE, as_json: AsJson = False) -> None:
    """Read every page, row, seal and count; change nothing.

    Exit code 0: all is well; 1: something is damaged, and how much of it is said.

    Example: separatrix store check --store results.db
    """
    from separatrix.sweeps.store.errors import StoreError
    from separatrix.sweeps.store.maintenance import check_store

    try:
        found = check_store(url)
    except StoreError as error:
        if as_json:
            print_json({"sound": False, "error": str(error)})
        else:
            console().print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    if as_json:
        print_json(found.as_json())
    else:
        word = "[green]sound[/]" if found.sound else "[red]damaged[/]"
        console().print(f"{_what(found)}: [bold]{word}[/]", soft_wrap=True)
        _tell(found)
        if not found.sound:
            told = "separatrix store repair saves what is intact into a new store"
            console().print(f"  {told}", style="dim")
    raise typer.Exit(0 if found.sound else 1)


@commands.command()
def repair(
    url: StoreUrl = HERE,
    out: Annotated[
        Path | None, typer.Option(help="The new store; results.repaired.db beside results.db if not given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Save what is intact into a new store; the damaged one is left as it is.

    Cells that are lost are computed again by the same sweep on the new store.

    Example: separatrix store repair --store results.db --out sound.db
    """
    from separatrix.sweeps.store.maintenance import repair_store

    path, saved = repair_store(url, out)
    if as_json:
        print_json({**saved.as_json(), "store": str(path)})
        return
    console().print(f"saved: {_what(saved)}", soft_wrap=True)
    _tell(saved)


@commands.command()
def upgrade(url: StoreUrl = HERE, as_json: AsJson = False) -> None:
    """Bring an older store up to date, all of it or nothing.

    Looking at an older store leaves it as it is; a sweep brings it up to date as well. An older separatrix
    refuses it from then on.

    Example: separatrix store upgrade --store results.db
    """
    from separatrix.sweeps.store.maintenance import upgrade_store

    before, after = upgrade_store(url)
    if as_json:
        print_json({"before": before, "after": after})
    else:
        said = f"from version {before} to {after}" if before < after else f"is of version {after} already"
        console().print(f"the store {said}")


@commands.command()
def backup(
    out: Annotated[Path, typer.Argument(help="The copy: a SQLite file that is not there yet.")],
    url: StoreUrl = HERE,
    as_json: AsJson = False,
) -> None:
    """A copy as of one moment, also while sweeps fill the store.

    A store in PostgreSQL is copied into a SQLite file, which every command reads.

    Example: separatrix store backup copy.db --store results.db
    """
    from separatrix.sweeps.store.maintenance import backup_store

    made = backup_store(url, out)
    if as_json:
        print_json({"copy": str(made)})
    else:
        console().print(f"copied to {plain(str(made))}", soft_wrap=True)


def _what(found: Health) -> str:
    return (
        f"{plain(found.store)}, version {found.version}: {found.cells:,} cells, {found.sweeps:,} sweeps with "
        f"{found.members:,} members, {found.environments:,} environments, {found.files:,} files"
    )


def _tell(found: Health) -> None:
    out = console()
    if found.damage:
        out.print(f"  {found.damage.words}")
    if found.pages:
        lines = "complaint" if found.pages == 1 else "complaints"
        out.print(f"  {found.pages:,} {lines} of SQLite about pages and indexes")
