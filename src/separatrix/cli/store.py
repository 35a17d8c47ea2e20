"""`store check`, `store repair` and `store backup`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option, Typer

from separatrix.cli.options import HERE, AsJson, StoreUrl
from separatrix.cli.terminal import console, plain, show

if TYPE_CHECKING:
    from separatrix.sweeps.store.maintenance import StoreHealth, UnreadableStore

commands = Typer(help="Check, repair or back up a store.", no_args_is_help=True)


@commands.command()
def check(url: StoreUrl = HERE, as_json: AsJson = False) -> None:
    """Verify every page, row and checksum; change nothing.

    Exit code 0: the store is sound; 1: it is damaged, and the damage is listed.

    Example: separatrix store check --store results.db
    """
    from separatrix.sweeps.store.errors import StoreError
    from separatrix.sweeps.store.maintenance import UnreadableStore, check_store

    try:
        health: StoreHealth | UnreadableStore = check_store(url)
    except StoreError as error:
        health = UnreadableStore(str(error))
    show(health, as_json, lambda: _print_check(health))
    raise Exit(0 if health.sound else 1)


def _print_check(health: StoreHealth | UnreadableStore) -> None:
    from separatrix.sweeps.store.maintenance import UnreadableStore

    if isinstance(health, UnreadableStore):
        console().print(health.error, markup=False, soft_wrap=True)
        return
    word = "[green]sound[/]" if health.sound else "[red]damaged[/]"
    console().print(f"{_describe(health)}: [bold]{word}[/]", soft_wrap=True)
    _print_damage(health)
    if not health.sound:
        console().print("  separatrix store repair copies the intact rows into a new store", style="dim")


@commands.command()
def repair(
    url: StoreUrl = HERE,
    out: Annotated[Path | None, Option(help="The new store (default: results.repaired.db beside results.db).")] = None,
    as_json: AsJson = False,
) -> None:
    """Copy the intact rows into a new store; the damaged one is left unchanged.

    The same sweep on the new store computes the lost cells again.

    Example: separatrix store repair --store results.db --out sound.db
    """
    from separatrix.sweeps.store.maintenance import repair_store

    health = repair_store(url, out)

    def view() -> None:
        console().print(f"saved: {_describe(health)}", soft_wrap=True)
        _print_damage(health)

    show(health, as_json, view)


@commands.command()
def backup(
    out: Annotated[Path, Argument(help="The copy: a SQLite file that does not exist yet.")],
    url: StoreUrl = HERE,
    as_json: AsJson = False,
) -> None:
    """Copy the store as it is at one moment, also while sweeps fill it.

    A store in PostgreSQL is copied into a SQLite file, which every command reads.

    Example: separatrix store backup copy.db --store results.db
    """
    from separatrix.sweeps.store.maintenance import backup_store

    backup = backup_store(url, out)
    show(backup, as_json, lambda: console().print(f"copied to {plain(str(backup.copy))}", soft_wrap=True))


def _describe(health: StoreHealth) -> str:
    return (
        f"{plain(health.store)}, version {health.version}: {health.cells:,} cells, {health.sweeps:,} sweeps "
        f"with {health.members:,} members, {health.environments:,} environments, {health.files:,} files"
    )


def _print_damage(health: StoreHealth) -> None:
    if health.damaged:
        console().print(f"  {health.damaged.description}")
    if health.pages:
        faults = "1 fault" if health.pages == 1 else f"{health.pages:,} faults"
        console().print(f"  SQLite finds {faults} in pages and indexes")
