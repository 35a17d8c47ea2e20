"""Reports on several experiments: the default report (`questions.toml`), and plans with `[[learn]]`."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from separatrix.analysis.evidence.predictions import Prediction, check_predictions
from separatrix.analysis.evidence.protocol import Experiment, read_experiment, run_experiments
from separatrix.analysis.evidence.runs import open_session
from separatrix.analysis.evidence.training_result import ReportPart
from separatrix.core.documents import Document
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import UsageError, read_words
from separatrix.sweeps.learn_table import LearnTable
from separatrix.sweeps.plan import Plan
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.store import DEFAULT, Address
from separatrix.sweeps.sweep import plan_named
from separatrix.training.tasks import RealTask


@dataclass(frozen=True)
class ReportQuestion:
    """A part of the report: experiments as they are typed after `learn`, without options."""

    name: str
    title: str
    text: str
    experiments: Sequence[str]
    varied: str | None = None
    """The parameter in which the experiments differ."""
    tuned: int = 1
    """Runs from hand-written weights with noise."""
    is_about_rates: bool = False


_QUESTIONS_TOML = Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
QUESTIONS = tuple(ReportQuestion(**question) for question in tomllib.loads(_QUESTIONS_TOML)["question"])


@dataclass(frozen=True)
class TrainingReport(Document):
    """The results of several experiments, and the predictions for them."""

    parts: tuple[ReportPart, ...]
    predictions: tuple[Prediction, ...]
    seconds: float


def run_report(
    store: str | Address = DEFAULT,
    *,
    seeds: int = 6,
    questions: Sequence[ReportQuestion] = QUESTIONS,
    workers: int | None = None,
    scheduler: str | None = None,
    tell: Tell = lambda _: None,
    hear: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> TrainingReport:
    """Answer every question, the pilots of all before the seeds; runs in the store are not computed again.

    **Arguments:**

    - `store`: URL or file of the store.
    - `seeds`: fresh runs of each mechanism in each experiment.
    - `questions`: the questions to answer.
    - `workers`, `scheduler`: number of local processes, or the address of a Dask cluster.
    - `tell`, `hear`: called with the progress, and when a signal requests to stop.
    - `say`: called with each stage as it begins.
    """
    start = time.monotonic()
    pairs = [(command, question.tuned) for question in questions for command in question.experiments]
    experiments = [read_command(command, seeds, tuned) for command, tuned in pairs]
    with open_session(store, workers, scheduler, tell, hear, say) as session:
        results = run_experiments(experiments, session, "learn")
    remaining = iter(results)
    parts = tuple(
        ReportPart(
            *(question.name, question.title, question.text),
            tuple(islice(remaining, len(question.experiments))),
            *(question.varied, question.is_about_rates),
        )
        for question in questions
    )
    return TrainingReport(parts, check_predictions(results), time.monotonic() - start)


def read_command(
    command: str, seeds: int = 6, tuned: int = 1, pilots: int = 1, changes: Mapping[str, object] | None = None
) -> Experiment:
    """Return the experiment that is typed so after `learn`, with some parameters changed."""
    task, mechanisms, *words = command.split()
    return read_experiment(task, mechanisms, {**read_words(words), **(changes or {})}, seeds, pilots, tuned)


def learn_plan(
    plan: str | Path | Plan,
    store: str | Address = DEFAULT,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    allow: Collection[str] = (),
    device: str | None = None,
    tell: Tell = lambda _: None,
    hear: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> TrainingReport:
    """Run every table of a plan by the protocol, a part for each: `learn_plan("benchmarks")`.

    Runs in the store are not computed again; at the end the store has all of them as one sweep, named as the
    plan. A script that calls this needs `if __name__ == "__main__":` around it, since workers import it.

    **Arguments:**

    - `plan`: a TOML file, the name of a plan that comes with separatrix, or a plan that was read. Each of its
      `[[learn]]` tables has the number of `pilots` that choose its rates.
    - `store`: URL or file of the store.
    - `workers`, `scheduler`: number of local processes, or the address of a Dask cluster.
    - `allow`: mechanisms of your own, `module:attribute`, that the plan may load.
    - `device`: device of the training runs, as torch names it; only `cpu` is tested here.
    - `tell`, `hear`: called with the progress, and when a signal requests to stop.
    - `say`: called with each stage of a table as it begins.
    """
    loaded_plan = plan if isinstance(plan, Plan) else plan_named(str(plan), allow, device)
    tables = read_plan_experiments(loaded_plan)
    for experiments in tables.values():
        for experiment in experiments:
            if isinstance(experiment.task, RealTask):
                experiment.task.splits()  # refuses data that are not there, before anything is run
    start, parts = time.monotonic(), list[ReportPart]()
    with open_session(store, workers, scheduler, tell, hear, say) as session:
        for name, experiments in tables.items():
            results = run_experiments(experiments, session, f"{loaded_plan.name}, {name}")
            task = experiments[0].task
            parts.append(ReportPart(name, task.title, task.description, tuple(results)))
        session.keep_as_sweep(loaded_plan.name, loaded_plan.text)
    return TrainingReport(tuple(parts), (), time.monotonic() - start)


def read_plan_experiments(plan: Plan) -> dict[str, list[Experiment]]:
    """Return the experiments of each table of a plan by its name, or raise UsageError."""
    tables = dict[str, list[Experiment]]()
    for part in plan.parts:
        if not isinstance(part, LearnTable) or not part.has_stages:
            raise UsageError(
                f"{part.name} of {plan.name} has no pilots to choose its rates; write pilots = 1 there, or "
                f"run the plan as it is: separatrix sweep {plan.name}"
            )
        if len(part.seeds) < 2:
            raise UsageError(f"{part.name} of {plan.name} has one seed; an interval takes two or more")
        tables[part.name] = experiments = list[Experiment]()
        for task, setting in part.setting:
            rates = ",".join(map(format_exact, part.list_rates(setting)))
            setting = setting.model_copy(update={"rates": rates})
            experiments.append(Experiment(task, part.mechanisms, setting, part.seeds, part.pilots, device=part.device))
    return tables
