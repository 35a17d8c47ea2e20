"""`learn`: train models on a task, and summarise the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from separatrix.cli import completion, options
from separatrix.cli.progress import announced, spell_time
from separatrix.cli.streams import notify
from separatrix.cli.sweep import progress
from separatrix.cli.terminal import console, escape, escape_all, new_table, print_lines, show
from separatrix.core.interrupts import exit_code

if TYPE_CHECKING:
    from separatrix.analysis.evidence.estimates import PairedDifference
    from separatrix.analysis.evidence.protocol import Experiment
    from separatrix.analysis.evidence.training_result import EqualState, MechanismEvidence, TrainingResult

REPORT = Path("evidence.html")
"""The default path of the default report."""
COLUMNS = ("mechanism", "proved", "witness", "tuned", "median", "rate")
"""Columns that fit into a line of 80 characters; the sentences below the table have the rest."""


def learn(
    task: Annotated[
        str | None, Argument(help="The task, for example mqar (`list tasks`).", autocompletion=completion.tasks)
    ] = None,
    mechanisms: Annotated[
        str | None, Argument(help="Comma-separated mechanisms: softmax,elu.", autocompletion=completion.mechanisms)
    ] = None,
    words: options.Words = None,
    seeds: Annotated[int, Option(help="Training seeds of each mechanism.")] = 6,
    pilots: Annotated[int, Option(help="Seeds of the pilot runs that select a learning rate.")] = 1,
    store: options.StoreUrl = options.HERE,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    plan: Annotated[
        str | None, Option(help="Run a plan with pilots: a TOML file, or a plan of separatrix such as benchmarks.")
    ] = None,
    allow: options.Allow = None,
    device: options.Device = None,
    out: Annotated[
        Path | None, Option(help="Write a page, for example evidence.html; the default report is always written.")
    ] = None,
    equal_state: Annotated[
        bool,
        Option(
            "--equal-state",
            help="Also compare at equal state: at key widths where all carry as many bytes as the first.",
        ),
    ] = False,
    published: Annotated[
        bool, Option("--published", help="Measure published numbers again (`list published`): all, or the named ones.")
    ] = False,
    as_json: options.AsJson = False,
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
    from separatrix.sweeps.store import parse_address
    from separatrix.training.tasks import Setting, task_named

    if plan is not None:
        if equal_state or published:
            raise UsageError("a plan defines its runs; leave out `equal_state` and `published`")
        if task is not None:
            raise UsageError(f"a plan names its tasks; leave out {task}, or leave out `plan`")
        from separatrix.cli.learn_plan import run_plan

        plan_options = {"store": parse_address(store), "workers": workers, "scheduler": scheduler}
        run_plan(plan, allow or (), device, plan_options, out, as_json)
        return
    # Paths are checked before hours of training, not after.
    if out is not None or (task is None and not published):
        require_writable(out or REPORT, page.SUFFIXES)
    run_options: dict[str, Any] = {"seeds": seeds, "workers": workers, "scheduler": scheduler}
    option_names = {*run_options, "pilots", "store", "out", "equal_state", "published"}
    if equal_state and (published or task is None):
        raise UsageError("`equal_state` takes a task and mechanisms: separatrix learn mqar softmax,delta")
    if published:
        from separatrix.cli.published import reproduce_published

        run_options |= {"pilots": pilots, "store": parse_address(store)}
        # With --published, the words that are usually a task and mechanisms are names of entries.
        names = [word for word in (task, mechanisms, *(words or [])) if word]
        reproduce_published(names, run_options, out, as_json, option_names)
        return
    if task is None:
        _report(parse_address(store), out or REPORT, run_options, as_json)
        return
    if mechanisms is None or "=" in mechanisms.partition(":")[0]:
        raise UsageError(f"name the mechanisms after the task: separatrix learn {task} softmax,elu")
    parameters = read_words(words or [], {*task_named(task).schema.model_fields, *Setting.model_fields}, option_names)
    from separatrix.analysis.evidence.protocol import learn as run
    from separatrix.analysis.evidence.protocol import read_experiment

    run_options |= {"pilots": pilots, "store": parse_address(store), "equal_state": equal_state}
    cost = _expect(read_experiment(task, mechanisms, parameters, seeds, pilots), workers)
    with announced("learn", cost, as_json), run_progress(as_json) as reporters:
        result = run(task, mechanisms, parameters, **run_options, **reporters)
    if out is not None:
        arguments = *(words or []), *(["--equal-state"] if equal_state else [])
        command = " ".join(("separatrix learn", task, mechanisms, *arguments))
        page.write(f"What was learned: {result.label}", [result.as_part()], command, out, result.as_json())
    show(result, as_json, lambda: _view(result))
    if not any(row.runs for row in result.mechanisms):
        raise Exit(1)


def _expect(experiment: Experiment, workers: int | None) -> str:
    """Return the number of runs and their time, estimated from a few steps and without early stopping."""
    from separatrix.analysis.evidence.expected_time import expect_time

    estimate = expect_time(experiment)
    times = ", ".join(f"{name} {spell_time(seconds)}" for name, seconds in estimate.seconds.items())
    if not times:
        return f"{estimate.runs} runs"
    total = spell_time(estimate.with_processes(workers))
    return f"{estimate.runs} runs of each mechanism, about {total}; one run: {times}; stored runs take none"


def _report(store: Any, out: Path, run_options: Mapping[str, Any], as_json: bool) -> None:
    """Run the default report, write its page, and print its sentences."""
    from separatrix.analysis.evidence.experiments import run_report
    from separatrix.pages.learned import page

    cost = "the default tasks: some hundred runs, about 10 s of a core each"
    with announced("learn", cost, as_json), run_progress(as_json) as reporters:
        result = run_report(store, **run_options, **reporters, say=notify_unless(as_json))
    ledger = page.predictions_section(result.predictions)
    page.write("What was learned", result.parts, "separatrix learn", out, result.as_json(), ledger)

    def view() -> None:
        for part in result.parts:
            console().print(f"\n[bold]{escape(part.title)}[/]")
            for part_result in part.results:
                _view(part_result)
        console().print(f"\n{escape(str(out))} has the curves; it took {spell_time(result.seconds)}")

    show(result, as_json, view)


@contextmanager
def run_progress(quiet: bool) -> Iterator[dict[str, Any]]:
    """Show the progress of runs; yield the functions that experiments call with it, by argument name.

    An interruption by the user is reported, and ends the command with the code of an interrupted sweep.
    """
    from separatrix.analysis.evidence.runs import Stopped

    try:
        with progress(quiet, "runs") as bar:
            yield {"tell": bar.tell, "hear": bar.hear}
    except Stopped as stopped:
        notify(str(stopped))
        raise Exit(exit_code()) from None


def notify_unless(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints a line on stderr, or nothing if `quiet`."""
    return (lambda message: None) if quiet else notify


def _view(result: TrainingResult) -> None:
    """Print the evidence of one task."""
    from separatrix.pages.learned.texts import HEAD, evidence_row, seeds_text, summary_text

    out = console()
    out.print(f"[bold]{escape(result.label)}[/]  {escape(result.task.title)}")
    out.print(f"score: {result.task.metric.value}")
    out.print(f"ceiling {result.ceiling:.4f}  {escape(result.ceiling_by)}")
    out.print(f"floor   {result.floor:.4f}  {escape(result.floor_by)}")
    rows = [
        {**dict(zip(HEAD, evidence_row(evidence), strict=True)), "median": format_median(evidence)}
        for evidence in result.mechanisms
    ]
    out.print(new_table(*COLUMNS, rows=(escape_all(numbers[name] for name in COLUMNS) for numbers in rows)))
    for evidence, numbers in zip(result.mechanisms, rows, strict=True):
        size = f"{numbers['weights']} weights, {numbers['state, bytes']} bytes of state"
        out.print(f"[bold]{escape(evidence.mechanism)}[/] {escape(evidence.sentence)}. [dim]{size}[/]")
        out.print(f"  seeds {seeds_text(evidence.trained)}; solved {escape(numbers['solved'])}")
        for length, summary in evidence.further_lengths.items():
            out.print(f"  tested at {length}: {summary_text(summary)}")
        print_failures(evidence.failed)
    _view_paired(result.paired)
    if result.equal_state is not None:
        _view_equal(result.equal_state)
    elif result.states_differ:
        out.print("states differ at equal key width; --equal-state compares at equal state", style="dim")


def _view_paired(differences: Sequence[PairedDifference]) -> None:
    """Print the exact test of each pair, and the differences that this number of seeds cannot resolve."""
    from separatrix.analysis.evidence.estimates import describe_resolution

    for pair in differences:
        test = f"{pair.difference:+.4f}, p = {pair.p_value:.2g}, adjusted {pair.p_adjusted:.2g}"
        console().print(f"{escape(pair.a)} − {escape(pair.b)}: {test}", style="dim")
    print_lines([describe_resolution(differences)], "dim")


def _view_equal(equal: EqualState) -> None:
    """Print the comparison at equal state: the key widths and the scores."""
    from separatrix.pages.learned.texts import equal_state_head, equal_state_rows

    out = console()
    out.print(f"\n[bold]At equal state[/]: that of {escape(equal.reference)} after {equal.tokens:,} tokens")
    out.print(new_table(*equal_state_head(equal), rows=map(escape_all, equal_state_rows(equal))))
    for mechanism in (item.evidence for item in equal.mechanisms):
        size = "" if mechanism.parameters is None else f" [dim]{mechanism.parameters:,} weights[/]"
        out.print(f"[bold]{escape(mechanism.mechanism)}[/] {escape(mechanism.sentence)}.{size}")
        print_failures(mechanism.failed)
    print_lines((f"{name} carries no state from token to token" for name in equal.left_out), "dim")
    _view_paired(equal.paired)


def format_median(evidence: MechanismEvidence) -> str:
    """Format the median score of the training seeds."""
    return "–" if evidence.trained is None else f"{evidence.trained.median:.4f}"


def print_failures(messages: Iterable[str]) -> None:
    """Print each reason of failed runs once."""
    for message in dict.fromkeys(messages):
        console().print(f"  [red]failed[/] {escape(message)}")
