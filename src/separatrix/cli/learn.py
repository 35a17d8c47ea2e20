"""`learn`: train models on a task, and say what that shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import HERE, AsJson, StoreUrl, Words
from separatrix.cli.sweep import progress
from separatrix.cli.terminal import console, escape, new_table, show

if TYPE_CHECKING:
    from separatrix.evidence.found import Learned


def learn(
    task: Annotated[
        str | None, typer.Argument(help="What is learned, for example mqar (`list tasks`).")
    ] = None,
    mechanisms: Annotated[
        str | None, typer.Argument(help="Mechanisms, separated by commas: softmax,elu.")
    ] = None,
    words: Words = None,
    seeds: Annotated[int, typer.Option(help="Fresh runs of each mechanism.")] = 6,
    pilots: Annotated[int, typer.Option(help="Seeds on which each learning rate is tried before.")] = 1,
    store: StoreUrl = HERE,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine; one a core if not given.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Run on the Dask cluster with this scheduler: tcp://host:8786.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train on a task, and say what that shows.

    For each mechanism: what is proved, what weights that are written down score, what training reached
    over seeds, and one sentence: cannot, can and learns it, can and did not learn it here, or unknown.
    Words are parameters of the task (n=64), and of the model and its training (steps=800, rates=0.01).
    Runs that are in the store are not run again; stop it whenever you like (Ctrl-C).

    Example: separatrix learn needle softmax,elu n=64
    """
    from separatrix.evidence.protocol import learn as run
    from separatrix.parameters import UsageError, read_words
    from separatrix.store import store_address
    from separatrix.tasks import Setting, task_named

    if task is None:
        raise UsageError("name a task and mechanisms, for example: separatrix learn needle softmax,elu n=64")
    if mechanisms is None or "=" in mechanisms.partition(":")[0]:
        raise UsageError(f"name the mechanisms after the task: separatrix learn {task} softmax,elu")
    known = {*task_named(task).schema.model_fields, *Setting.model_fields}
    parameters = read_words(words or [], known, {"seeds", "pilots", "store", "workers", "scheduler"})
    with progress(as_json) as bar:
        found = run(
            task,
            mechanisms,
            parameters,
            seeds=seeds,
            pilots=pilots,
            store=store_address(store),
            workers=workers,
            scheduler=scheduler,
            tell=bar.tell,
            hear=bar.hear,
        )
    show(found, as_json, lambda: _view(found))


def _view(found: Learned) -> None:
    """Print what was learned of a task."""
    from separatrix.reports.learned.page import HEAD, row

    out = console()
    out.print(f"[bold]{escape(found.task.spelled)}[/]  {escape(found.task.title)}")
    out.print(f"score: {found.task.answers.value}")
    out.print(f"ceiling {found.ceiling.score:.4f}  {escape(found.ceiling.how)}")
    out.print(f"floor   {found.floor.score:.4f}  {escape(found.floor.how)}")
    table = new_table(*HEAD, pad_edge=False)
    for each in found.mechanisms:
        table.add_row(*map(escape, row(each)))
    out.print(table)
    for each in found.mechanisms:
        out.print(f"[bold]{escape(each.mechanism)}[/] {escape(each.sentence)}.")
        for message in dict.fromkeys(each.failed):
            out.print(f"  [red]failed[/] {escape(message)}")
    for pair in found.paired:
        if not pair.separated:
            seeds = "the seeds do not tell them apart"
            out.print(f"{escape(pair.a)} against {escape(pair.b)}: {seeds}", style="dim")
