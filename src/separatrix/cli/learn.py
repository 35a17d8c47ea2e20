"""`learn`: train models on a task, and summarise the evidence."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli import completion
from separatrix.cli.options import HERE, AsJson, StoreUrl, Words
from separatrix.cli.progress import announced
from separatrix.cli.sweep import progress, spell_time
from separatrix.cli.terminal import console, escape, new_table, print_json, show
from separatrix.core.interrupts import exit_code

if TYPE_CHECKING:
    from separatrix.analysis.evidence.estimates import PairedDifference
    from separatrix.analysis.evidence.protocol import Experiment
    from separatrix.analysis.evidence.training_result import EqualState, TrainingResult

REPORT = Path("evidence.html")
"""The default path of the default report."""
COLUMNS = ("mechanism", "proved", "witness", "tuned", "median", "rate")
"""Columns that fit into a line of 80 characters; the sentences below the table have the rest."""


def learn(
    task: Annotated[
        str | None,
        typer.Argument(help="The task, for example mqar (`list tasks`).", autocompletion=completion.tasks),
    ] = None,
    mechanisms: Annotated[
        str | None,
        typer.Argument(help="Comma-separated mechanisms: softmax,elu.", autocompletion=completion.mechanisms),
    ] = None,
    words: Words = None,
    seeds: Annotated[int, typer.Option(help="Training seeds of each mechanism.")] = 6,
    pilots: Annotated[int, typer.Option(help="Seeds of the pilot runs that select a learning rate.")] = 1,
    store: StoreUrl = HERE,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine (default: one per core).")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Run on the Dask cluster with this scheduler: tcp://host:8786.")
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(help="Run a plan with pilots: a TOML file, or a plan of separatrix such as benchmarks."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Your own mechanism, module:attribute, that the plan may use."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Device for the runs of a plan: cuda, mps. Only cpu is tested.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a page, for example evidence.html; the default report is always written."),
    ] = None,
    equal_state: Annotated[
        bool,
        typer.Option(
            "--equal-state",
            help="Also compare at equal state: at key widths where all carry as many bytes as the first.",
        ),
    ] = False,
    published: Annotated[
        bool,
        typer.Option(
            "--published",
            help="Measure published numbers again (`list published`): all, or the named ones.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train on a task and summarise the evidence; without arguments, run the default report.

    Prints for each mechanism its proved ceiling, the score of constructed weights (witness), the scores of
    all training seeds with their median, and one sentence: the mechanism cannot solve the task, can and
    learns it, can and did not learn it here, or it is unknown. NAME=VALUE words set parameters of the task
    (n=64), of the model and of its training (steps=800, rates=0.01). Stored runs are not repeated, so you
    can interrupt with Ctrl-C and continue later. The exit code is 1 if every run of every mechanism failed.

    With --plan, every table of the plan that has `pilots` is run in this way, with the seeds of the plan.
    With --published, numbers of the literature are measured again; the words after it select some of them.

    \b
    Example:
      separatrix learn needle softmax,elu n=64
    """
    from separatrix.core.files.writing import require_writable
    from separatrix.core.parameters import UsageError, read_words
    from separatrix.pages.learned import page
    from separatrix.sweeps.store import store_address
    from separatrix.training.tasks import Setting, task_named

    if plan is not None:
        if equal_state or published:
            raise UsageError("a plan defines its runs; leave out `equal_state` and `published`")
        if task is not None:
            raise UsageError(f"a plan names its tasks; leave out {task}, or leave out `plan`")
        from separatrix.cli.learn_plan import run_plan

        options = {"store": store_address(store), "workers": workers, "scheduler": scheduler}
        run_plan(plan, {**options, "allow": allow or (), "device": device}, out, as_json)
        return
    if out is not None or (task is None and not published):
        require_writable(out or REPORT, page.ENDINGS)
    run_options: dict[str, Any] = {"seeds": seeds, "workers": workers, "scheduler": scheduler}
    option_names = {*run_options, "pilots", "store", "out", "equal_state", "published"}
    if equal_state and (published or task is None):
        raise UsageError("`equal_state` takes a task and mechanisms: separatrix learn mqar softmax,delta")
    if published:
        from separatrix.cli import published as ledger

        run_options |= {"pilots": pilots, "store": store_address(store)}
        names = [word for word in (task, mechanisms, *(words or [])) if word]
        with ending_early():
            ledger.published(names, run_options, out, as_json, option_names)
        return
    if task is None:
        _report(store_address(store), out or REPORT, run_options, as_json)
        return
    if mechanisms is None or "=" in mechanisms.partition(":")[0]:
        raise UsageError(f"name the mechanisms after the task: separatrix learn {task} softmax,elu")
    parameter_names = {*task_named(task).schema.model_fields, *Setting.model_fields}
    parameters = read_words(words or [], parameter_names, option_names)
    from separatrix.analysis.evidence.protocol import learn as run
    from separatrix.analysis.evidence.protocol import read_experiment

    run_options |= {"pilots": pilots, "store": store_address(store), "equal_state": equal_state}
    cost = _expect(read_experiment(task, mechanisms, parameters, seeds, pilots), workers)
    with announced("learn", cost, as_json), ending_early(), progress(as_json, "runs") as bar:
        found = run(task, mechanisms, parameters, **run_options, tell=bar.tell, hear=bar.hear)
    if out is not None:
        asked = *(words or []), *(["--equal-state"] if equal_state else [])
        typed = " ".join(("separatrix learn", task, mechanisms, *asked))
        page.write(f"What was learned: {found.label}", [found.as_part()], typed, out, found.as_json())
    show(found, as_json, lambda: _view(found))
    if not any(row.runs for row in found.mechanisms):
        raise typer.Exit(1)


def _expect(asked: Experiment, workers: int | None) -> str:
    """The number of runs, and an estimate of their time from a few timed steps, without early stopping."""
    from separatrix.analysis.evidence.expected_time import expect_time

    found = expect_time(asked)
    each = ", ".join(f"{name} {spell_time(seconds)}" for name, seconds in found.seconds.items())
    if not each:
        return f"{found.runs} runs"
    total = spell_time(found.with_processes(workers))
    return f"{found.runs} runs of each mechanism, about {total}; one run: {each}; stored runs take none"


def _report(store: Any, out: Path, how: Mapping[str, Any], as_json: bool) -> None:
    """Run the default report, write its page, and print its sentences."""
    from separatrix.analysis.evidence.experiments import run_report
    from separatrix.pages.learned import page

    what = "the default tasks: some hundred runs, about 10 s of a core each"
    with announced("learn", what, as_json), ending_early(), progress(as_json, "runs") as bar:
        found = run_report(store, **how, tell=bar.tell, hear=bar.hear, say=lambda told: say(told, as_json))
    ledger = page.ledger(found.predictions)
    page.write("What was learned", found.parts, "separatrix learn", out, found.as_json(), ledger)
    if as_json:
        print_json(found.as_json())
        return
    for part in found.parts:
        console().print(f"\n[bold]{escape(part.title)}[/]")
        for each in part.results:
            _view(each)
    console().print(f"\n{escape(str(out))} has the curves; it took {spell_time(found.seconds)}")


@contextmanager
def ending_early() -> Iterator[None]:
    """Say that the user stopped it, with the exit code of a sweep that was."""
    from separatrix.analysis.evidence.runs import Stopped

    try:
        yield
    except Stopped as stopped:
        print(f"separatrix: {stopped}", file=sys.stderr, flush=True)
        raise typer.Exit(exit_code()) from None


def say(told: str, quiet: bool) -> None:
    """Print on stderr what begins."""
    if not quiet:
        print(f"separatrix: {told}", file=sys.stderr, flush=True)


def _view(found: TrainingResult) -> None:
    """Print what was learned of a task."""
    from separatrix.pages.learned.page import HEAD, row, seeds_text, summary_text

    out = console()
    out.print(f"[bold]{escape(found.label)}[/]  {escape(found.task.title)}")
    out.print(f"score: {found.task.metric.value}")
    out.print(f"ceiling {found.ceiling:.4f}  {escape(found.ceiling_by)}")
    out.print(f"floor   {found.floor:.4f}  {escape(found.floor_by)}")
    shown = [dict(zip(HEAD, row(mechanism), strict=True)) for mechanism in found.mechanisms]
    for each, numbers in zip(found.mechanisms, shown, strict=True):
        numbers["median"] = "–" if each.trained is None else f"{each.trained.median:.4f}"
    table = new_table(*COLUMNS, pad_edge=False)
    for numbers in shown:
        table.add_row(*(escape(numbers[name]) for name in COLUMNS))
    table.columns[0].overflow = "fold"
    out.print(table)
    for each, numbers in zip(found.mechanisms, shown, strict=True):
        weighs = f"{numbers['weights']} weights, {numbers['state, bytes']} bytes of state"
        out.print(f"[bold]{escape(each.mechanism)}[/] {escape(each.sentence)}. [dim]{weighs}[/]")
        out.print(f"  seeds {seeds_text(each.trained)}; solved {escape(numbers['solved'])}")
        for length, summary in each.further_lengths.items():
            out.print(f"  tested at {length}: {summary_text(summary)}")
        for message in dict.fromkeys(each.failed):
            out.print(f"  [red]failed[/] {escape(message)}")
    _view_paired(found.paired)
    if found.equal_state is not None:
        _view_equal(found.equal_state)
    elif found.states_differ:
        out.print(
            "at equal key width states are not equal; --equal-state compares at equal state", style="dim"
        )


def _view_paired(paired: Sequence[PairedDifference]) -> None:
    """Print the exact test of each pair, and what so many seeds cannot show."""
    from separatrix.analysis.evidence.estimates import describe_resolution

    for pair in paired:
        tested = f"{pair.difference:+.4f}, p = {pair.p_value:.2g}, adjusted {pair.p_adjusted:.2g}"
        console().print(f"{escape(pair.a)} − {escape(pair.b)}: {tested}", style="dim")
    if (resolution := describe_resolution(paired)) is not None:
        console().print(resolution, style="dim")


def _view_equal(found: EqualState) -> None:
    """Print the comparison at equal state: what was chosen, and what it reached."""
    from separatrix.pages.learned.page import equal_head, equal_rows

    out = console()
    out.print(f"\n[bold]At equal state[/]: that of {escape(found.reference)} after {found.tokens:,} tokens")
    table = new_table(*equal_head(found), pad_edge=False)
    for cells in equal_rows(found):
        table.add_row(*map(escape, cells))
    table.columns[0].overflow = "fold"
    out.print(table)
    for mechanism in (item.evidence for item in found.mechanisms):
        weighs = "" if mechanism.parameters is None else f" [dim]{mechanism.parameters:,} weights[/]"
        out.print(f"[bold]{escape(mechanism.mechanism)}[/] {escape(mechanism.sentence)}.{weighs}")
        for message in dict.fromkeys(mechanism.failed):
            out.print(f"  [red]failed[/] {escape(message)}")
    for name in found.left_out:
        out.print(f"{escape(name)} carries nothing from token to token", style="dim")
    _view_paired(found.paired)
