"""`learn --plan`: run the experiments of a plan."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.cli.learn import format_median, notify_unless, print_failures, run_progress
from separatrix.cli.progress import spell_time
from separatrix.cli.terminal import console, escape, new_table, show

if TYPE_CHECKING:
    from separatrix.analysis.evidence.experiments import TrainingReport

HEAD = ("task", "mechanism", "median", "floor", "beside it")


def run_plan(
    plan: str, allow: Sequence[str], device: str | None, run_options: Mapping[str, Any], out: Path | None, as_json: bool
) -> None:
    """Run the tables of a plan, write the page, and print the conclusions."""
    from separatrix.analysis.evidence.experiments import learn_plan
    from separatrix.core.files.writing import require_writable
    from separatrix.pages.learned import page
    from separatrix.sweeps.sweep import plan_named

    definition = plan_named(plan, allow, device)
    path = out or Path(f"{definition.name}.html")
    require_writable(path, page.SUFFIXES)
    with run_progress(as_json) as reporters:
        result = learn_plan(definition, **run_options, **reporters, say=notify_unless(as_json))
    command = f"separatrix learn --plan {shlex.quote(plan)}"
    page.write(f"What was learned: {definition.name}", result.parts, command, path, result.as_json())
    show(result, as_json, lambda: _view(result, path))


def _view(result: TrainingReport, path: Path) -> None:
    """Print a line for each mechanism, the conclusions, and the path of the page."""
    from separatrix.pages.learned.texts import seeds_text

    out = console()
    results = [training for part in result.parts for training in part.results]
    table = new_table(*HEAD)
    for training in results:
        for mechanism in training.mechanisms:
            name, task = mechanism.mechanism, f"{training.task.spelling}, {training.setting.steps:,} steps"
            scores = format_median(mechanism), f"{training.floor:.4f}", training.beside_floor[name].value
            table.add_row(*map(escape, (task, name, *scores)))
    out.print(table)
    for training in results:
        out.print(f"[bold]{escape(training.task.spelling)}[/] floor: {escape(training.floor_by)}")
        for mechanism in training.mechanisms:
            out.print(f"  {escape(mechanism.mechanism)} seeds: {seeds_text(mechanism.trained)}", style="dim")
        for line in training.conclusions:
            out.print(f"  {escape(line)}")
        print_failures(text for mechanism in training.mechanisms for text in mechanism.failed)
    out.print(f"\n{escape(str(path))} has the rest; it took {spell_time(result.seconds)}")
