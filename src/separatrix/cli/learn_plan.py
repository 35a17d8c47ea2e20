"""`learn --plan`: run the experiments of a plan."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.cli.sweep import progress, spell_time
from separatrix.cli.terminal import console, escape, new_table, print_json

if TYPE_CHECKING:
    from separatrix.analysis.evidence.experiments import TrainingReport

HEAD = ("task", "mechanism", "median", "floor", "beside it")


def run_plan(plan: str, options: Mapping[str, Any], out: Path | None, as_json: bool) -> None:
    """Run the tables of a plan, write the page, and print the conclusions."""
    from separatrix.analysis.evidence.experiments import learn_plan
    from separatrix.cli.learn import ending_early, say
    from separatrix.core.files.writing import require_writable
    from separatrix.pages.learned import page
    from separatrix.sweeps.sweep import plan_named

    definition = plan_named(plan, options.get("allow", ()), options.get("device"))
    path = out or Path(f"{definition.name}.html")
    require_writable(path, page.SUFFIXES)
    run_options = {name: value for name, value in options.items() if name not in ("allow", "device")}
    with ending_early(), progress(as_json, "runs") as bar:
        result = learn_plan(
            definition, **run_options, tell=bar.tell, hear=bar.hear, say=lambda line: say(line, as_json)
        )
    command = f"separatrix learn --plan {shlex.quote(plan)}"
    page.write(f"What was learned: {definition.name}", result.parts, command, path, result.as_json())
    if as_json:
        print_json(result.as_json())
        return
    _view(result)
    console().print(f"\n{escape(str(path))} has the rest; it took {spell_time(result.seconds)}")


def _view(result: TrainingReport) -> None:
    """Print a line for each mechanism, and the conclusions."""
    from separatrix.pages.learned.texts import seeds_text

    out = console()
    results = [training for part in result.parts for training in part.results]
    table = new_table(*HEAD)
    for training in results:
        for mechanism in training.mechanisms:
            median = "–" if mechanism.trained is None else f"{mechanism.trained.median:.4f}"
            cells = (
                f"{training.task.spelling}, {training.setting.steps:,} steps",
                mechanism.mechanism,
                median,
                f"{training.floor:.4f}",
            )
            table.add_row(*map(escape, cells), escape(training.beside_floor[mechanism.mechanism].value))
    out.print(table)
    for training in results:
        out.print(f"[bold]{escape(training.task.spelling)}[/] floor: {escape(training.floor_by)}")
        for mechanism in training.mechanisms:
            out.print(f"  {escape(mechanism.mechanism)} seeds: {seeds_text(mechanism.trained)}", style="dim")
        for line in training.conclusions:
            out.print(f"  {escape(line)}")
        for message in dict.fromkeys(text for mechanism in training.mechanisms for text in mechanism.failed):
            out.print(f"  [red]failed[/] {escape(message)}")
