"""`learn --plan`: a plan of experiments by the protocol."""

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


def run_plan(plan: str, how: Mapping[str, Any], out: Path | None, as_json: bool) -> None:
    """Run the tables of a plan, write the page, and print what may be concluded."""
    from separatrix.analysis.evidence.experiments import learn_plan
    from separatrix.cli.learn import ending_early, say
    from separatrix.core.files.writing import require_writable
    from separatrix.pages.learned import page
    from separatrix.sweeps.sweep import plan_named

    read = plan_named(plan, how.get("allow", ()), how.get("device"))
    to = out or Path(f"{read.name}.html")
    require_writable(to, page.ENDINGS)
    rest = {name: value for name, value in how.items() if name not in ("allow", "device")}
    with ending_early(), progress(as_json, "runs") as bar:
        found = learn_plan(read, **rest, tell=bar.tell, hear=bar.hear, say=lambda line: say(line, as_json))
    typed = f"separatrix learn --plan {shlex.quote(plan)}"
    page.write(f"What was learned: {read.name}", found.parts, typed, to, found.as_json())
    if as_json:
        print_json(found.as_json())
        return
    _view(found)
    console().print(f"\n{escape(str(to))} has the rest; it took {spell_time(found.seconds)}")


def _view(found: TrainingReport) -> None:
    """Print a line for each mechanism, and what follows."""
    from separatrix.pages.learned.page import seeds_text

    out = console()
    every = [each for part in found.parts for each in part.results]
    table = new_table(*HEAD)
    for each in every:
        for mechanism in each.mechanisms:
            median = "–" if mechanism.trained is None else f"{mechanism.trained.median:.4f}"
            cells = (
                f"{each.task.spelling}, {each.setting.steps:,} steps",
                mechanism.mechanism,
                median,
                f"{each.floor:.4f}",
            )
            table.add_row(*map(escape, cells), escape(each.beside_floor[mechanism.mechanism].value))
    out.print(table)
    for each in every:
        out.print(f"[bold]{escape(each.task.spelling)}[/] floor: {escape(each.floor_by)}")
        for mechanism in each.mechanisms:
            out.print(f"  {escape(mechanism.mechanism)} seeds: {seeds_text(mechanism.trained)}", style="dim")
        for line in each.conclusions:
            out.print(f"  {escape(line)}")
        for message in dict.fromkeys(text for mechanism in each.mechanisms for text in mechanism.failed):
            out.print(f"  [red]failed[/] {escape(message)}")
