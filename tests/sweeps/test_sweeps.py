"""Sweeps: every cell once and right, whatever is killed on the way."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import separatrix as sx
from separatrix.analysis.cards.construction_result import reference_points
from separatrix.analysis.cards.outcomes import solve_until_decided
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import Grid, SeparatrixError, UsageError
from separatrix.exact.engines import EngineRefusal, closed
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.mechanisms import examples, mechanism_named
from separatrix.sweeps import backlog, cluster
from separatrix.sweeps import executors as executors_module
from separatrix.sweeps.backlog import MAX_BATCH, MAX_GROWTH, BatchSizes
from separatrix.sweeps.cluster import work_within
from separatrix.sweeps.estimate import CostBasis, estimate
from separatrix.sweeps.executors import BATCHES_PER_WORKER, LocalExecutor
from separatrix.sweeps.plan import Plan, read_plan
from separatrix.sweeps.progress import Progress
from separatrix.sweeps.run import run
from separatrix.sweeps.store import Answer, CellResult, CellStatus, Store, frame, open_store, results
from separatrix.sweeps.store.sweep_list import list_sweeps
from separatrix.sweeps.sweep import executor_for, find_plan
from separatrix.sweeps.verdict_cells import VerdictCell
from separatrix.sweeps.work import BatchResults, WorkBatch, make_result
from separatrix.sweeps.worker import OtherCode, get_environment, work
from sweep_tools import HEAD, HERE, SMALL, Inline, Instant, evaluate

NUMBERS = ("verdict", "distinguish", "low", "high", "fire_d0", "fire_d1", "margin", "bits", "p0", "p1", "q")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'results.db'}", create=True)


@pytest.fixture(scope="module")
def small() -> Plan:
    return read_plan(SMALL)


@pytest.fixture(scope="module")
def answers(small: Plan) -> dict[str, CellResult]:
    """Every cell of the small plan, one by one."""
    found = {}
    for _, cell in small:
        ((result,),) = evaluate([cell], HERE)
        found[cell.id] = result
    return found


def numbers(result: CellResult) -> dict[str, object]:
    return {name: result.findings.get(name) for name in NUMBERS}


def assert_same(store: Store, answers: dict[str, CellResult]) -> None:
    rows = {row["id"]: row for row in frame(store).iter_rows(named=True)}
    assert rows.keys() == answers.keys()
    for key, row in rows.items():
        assert {name: row[name] for name in NUMBERS} == numbers(answers[key])


def test_cells_have_the_answers_of_verdict(small: Plan, answers: dict[str, CellResult]) -> None:
    for _, cell in small:
        sampling = None if cell.draws is None else cell.draws.make_sampling(Fraction(cell.delta))
        found = sx.verdict(cell.construction, cell.mechanism, engine=cell.engine, sampling=sampling, **cell.parameters)
        answer = answers[cell.id]
        assert (answer.findings["verdict"], answer.findings["distinguish"]) == (found.word, found.outcome.distinguish)
        assert (answer.findings["low"], answer.findings["high"]) == found.outcome.interval
        kind = type(found.outcome.p0)
        assert answer.findings["p0"] is not None
        assert kind(answer.findings["p0"]) == found.outcome.p0


TOGETHER = {
    "spike": '{ n = "1e2:1e15:9:log", a1 = "0.4:1.6:9" }',
    "spike, identity": '{ n = "1e2:1e9:9:log", d = [12, 102], form = "identity" }',
    "spike, denominators": '{ n = 1000, a1 = [1, "1/7", "0.7000000001", "5/13"] }',
    "cross": '{ n = "1e2:1e9:9:log", a1 = [0.5, "1/3", "0.123456789"], r_Q = 1 }',
    "plain": '{ n = "1e2:1e8:30:log", peak = "3:5:4", m = 12 }',
}


@pytest.mark.parametrize("name", TOGETHER)
def test_numbers_do_not_depend_on_what_is_computed_together(name: str) -> None:
    head = HEAD if name != "plain" else HEAD.partition("[parameters]")[0]
    kind = name.partition(",")[0]
    table = f'[[sweep]]\nengine = "closed"\nconstruction = "{kind}"\nparameters = {TOGETHER[name]}'
    plan = read_plan(head + table)
    for mechanism in ("softmax", "linear"):
        cells = [cell for _, cell in plan if cell.mechanism == mechanism]
        alone = [result for cell in cells for some in evaluate([cell], HERE) for result in some]
        together = [result for some in evaluate(cells, HERE) for result in some]
        backwards = [result for some in evaluate(cells[::-1], HERE) for result in some][::-1]
        thirds = [result for i in range(3) for some in evaluate(cells[i::3], HERE) for result in some]
        reordered = [cell for i in range(3) for cell in cells[i::3]]
        assert any(result.status is CellStatus.DONE for result in alone)
        assert list(map(numbers, alone)) == list(map(numbers, together)) == list(map(numbers, backwards))
        found = dict(zip([cell.id for cell in reordered], map(numbers, thirds), strict=True))
        assert [found[cell.id] for cell in cells] == list(map(numbers, alone))


def test_a_sweep_keeps_every_cell_once(small: Plan, answers: dict[str, CellResult], store: Store) -> None:
    executor = LocalExecutor(2)
    try:
        told: list[int] = []
        done = run(small, store, executor, tell=lambda so_far: told.append(so_far.finished))
    finally:
        executor.close()
    assert_same(store, answers)
    assert (done.done, done.kept, done.failed, done.stopped) == (len(answers), small.count - len(answers), 0, False)
    assert told[0] == 0
    assert told[-1] == small.count
    assert told == sorted(told)
    row = results(store, limit=1).row(0, named=True)
    assert row["host"] == get_environment().host
    assert json.loads(row["versions"])["torch"] == get_environment().versions["torch"]
    assert row["seconds"] > 0


def test_nothing_is_computed_twice(small: Plan, answers: dict[str, CellResult], store: Store) -> None:
    first, second = Inline(), Inline()
    run(small, store, first)
    assert sum(len(batch.items) for batch in first.taken) == len(answers)
    done = run(small, store, second)
    assert second.taken == []
    assert done.kept == small.count


def test_the_same_cell_of_two_plans_is_computed_once(store: Store) -> None:
    one = read_plan(HEAD + '[[sweep]]\nengine = "closed"\nparameters.n = [100, 200, 300]')
    other = read_plan(HEAD + '[[sweep]]\nengine = "closed"\nparameters.n = ["3e2", 400]', name="other")
    executor = Inline()
    run(one, store, executor)
    run(other, store, executor)
    assert sum(len(batch.items) for batch in executor.taken) == 2 * 4
    assert [sweep.cells for sweep in list_sweeps(store)[0]] == [6, 4]
    assert set(results(store, sweep=2)["n"]) == {300, 400}


def test_cheap_cells_go_in_large_batches_and_expensive_ones_alone(store: Store) -> None:
    sizes_by_cost = BatchSizes()
    plan = read_plan(HEAD + '[[sweep]]\nengine = "closed"\nparameters = { n = 100, a1 = "0.5:1.5:1000" }')
    cells = [cell for _, cell in plan]
    assert sizes_by_cost.choose(cells[0].cost_key) == 1
    executor = Instant(room=1)
    assert run(plan, store, executor).done == len(cells)
    assert all(len({cell.cost_key for cell in batch.items}) == 1 for batch in executor.taken)
    sizes = [len(batch.items) for batch in executor.taken]
    assert sum(sizes) == len(cells)
    assert sizes[:4] == [1, MAX_GROWTH, MAX_GROWTH**2, MAX_GROWTH**3]
    sizes_by_cost.learn(WorkBatch(tuple(cells[:1])), [1e-9] * MAX_BATCH)
    for _ in range(60):
        sizes_by_cost.learn(WorkBatch(tuple(cells[:1])), [3.0])
    assert sizes_by_cost.choose(cells[0].cost_key) == 1


def test_a_huge_plan_does_not_sit_in_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never more cells are made than are looked up at once and waiting to be computed."""
    plan = read_plan(HEAD + '[[sweep]]\nengine = "closed"\nparameters = { n = 100, a1 = "0.5:1.5:1500" }')
    looked_up = most_cells = 200
    monkeypatch.setattr(backlog, "LOOKUP_SIZE", looked_up)
    monkeypatch.setattr(backlog, "MAX_BATCH", most_cells)
    made = 0
    whole = Plan.__iter__

    def counted(self: Plan) -> Iterator[tuple[str, VerdictCell]]:
        nonlocal made
        for each in whole(self):
            made += 1
            yield each

    monkeypatch.setattr(Plan, "__iter__", counted)
    executor, most = Instant(room=2), 0

    def look(so_far: object) -> None:
        nonlocal most
        stored = executor_stored(executor)
        most = max(most, made - stored)

    run(plan, store, executor, tell=look)
    assert made == 3000
    assert executor.most <= 2
    assert most <= looked_up + 4 * most_cells


def executor_stored(executor: Inline) -> int:
    return sum(len(batch.items) for batch in executor.taken) - sum(len(b.items) for b in executor._waiting)


def test_a_batch_that_takes_long_is_handed_back() -> None:
    plan = read_plan(HEAD + "[[sweep]]\nparameters = { n = 100, a1 = '0.5:1.5:50' }")
    cells = tuple(cell for _, cell in plan if cell.mechanism == "softmax")
    assert len(work(cells, 0.0)) == 1


def test_the_rest_of_a_batch_is_computed_too(small: Plan, answers: dict[str, CellResult], store: Store) -> None:
    class Short(Inline):
        def compute(self, cells: Sequence[VerdictCell]) -> BatchResults | None:
            return work(cells, 60.0)[: max(1, len(cells) // 2)]

    run(small, store, Short())
    assert_same(store, answers)


def test_a_cell_that_raises_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    (tmp_path / "raises_in_sweeps.py").write_text(
        "def attend(q, k, v):\n"
        "    if q.shape[-2] > 150:\n        raise RuntimeError('no more than\\n150 tokens')\n"
        "    return (q @ k.mT).softmax(-1) @ v\n"
    )
    monkeypatch.chdir(tmp_path)
    text = HEAD.replace('"linear"', '"raises_in_sweeps:attend"') + (
        '[[sweep]]\nengine = "dense"\ndraws = 5\nparameters.n = [100, 200]'
    )
    plan = read_plan(text, allow=["raises_in_sweeps:attend"])
    done = run(plan, store, Inline())
    assert (done.done, done.failed) == (3, 1)
    (row,) = results(store, status="failed").rows(named=True)
    assert row["n"] == 200
    assert row["message"] == "RuntimeError: no more than 150 tokens"
    assert row["verdict"] is None
    (tmp_path / "raises_in_sweeps.py").write_text("def attend(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n")
    assert run(plan, store, Inline()).kept == 3
    assert run(plan, store, Inline()).failed_before == 1
    again = Inline()
    twice = Plan("twice", "", (*plan.parts, *plan.parts))
    run(twice, store, again, retry_failed=True)
    assert [len(batch.items) for batch in again.taken] == [1]


def test_what_no_engine_can_answer_is_refused_with_the_reason(store: Store) -> None:
    plan = read_plan(HEAD.replace('"linear"', '"gla"') + '[[sweep]]\nengine = "closed"\nparameters.n = 100')
    done = run(plan, store, Inline())
    assert (done.done, done.refused, done.failed) == (1, 1, 0)
    (row,) = results(store, status="refused").rows(named=True)
    assert row["mechanism"] == "gla"
    assert "gla" in row["message"]


def test_an_undecided_tie_is_refused_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = closed.evaluate_each

    def unsure(*words: object) -> closed.ProbabilityGrid:
        found = real(*words)  # type: ignore[arg-type]
        found.undecided[...] = True
        return found

    monkeypatch.setattr(closed, "evaluate_each", unsure)
    plan = read_plan(HEAD + '[[sweep]]\nengine = "closed"\nparameters.n = [100, 200]')
    cells = [cell for _, cell in plan if cell.mechanism == "softmax"]
    found = [result for some in evaluate(cells, HERE) for result in some]
    assert [(each.status, each.findings.get("verdict")) for each in found] == [(CellStatus.REFUSED, None)] * 2
    assert all(each.message == closed.UNDECIDED for each in found)


def test_workers_that_are_killed_are_replaced(answers: dict[str, CellResult], small: Plan, store: Store) -> None:
    executor = LocalExecutor(2)

    def kill(so_far: Progress) -> None:
        """Until twice a batch was lost: a worker that is at work."""
        worker = executor._workers[0]
        if so_far.lost < 2 and worker.has_begun and worker.waiting:
            for process in list((worker.pool._processes or {}).values()):
                process.kill()

    try:
        done = run(small, store, executor, tell=kill)
    finally:
        executor.close()
    assert done.lost == 2
    assert done.failed == 0
    assert_same(store, answers)


def test_a_cell_that_ends_the_program_is_only_a_failed_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    (tmp_path / "exits_in_sweeps.py").write_text("def attend(q, k, v):\n    raise SystemExit('gone')\n")
    monkeypatch.chdir(tmp_path)
    text = HEAD.replace('"linear"', '"exits_in_sweeps:attend"') + (
        '[[sweep]]\nengine = "dense"\ndraws = 5\nparameters.n = [100, 200]'
    )
    done = run(read_plan(text, allow=["exits_in_sweeps:attend"]), store, Inline())
    assert (done.done, done.failed) == (2, 2)
    assert set(results(store, status="failed")["message"]) == {
        "WrongResult: tried to end the program: sys.exit('gone')"
    }


def test_workers_that_cannot_begin_end_the_sweep_and_blame_no_cell(
    store: Store, small: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors_module, "follow_parent", _die)
    executor = LocalExecutor(2, multiprocessing.get_context("fork"))
    with pytest.raises(SeparatrixError, match="die before they begin"):
        run(small, store, executor)
    executor.close()
    assert frame(store).height == 0


def _die() -> None:
    os._exit(3)


def test_a_cell_that_kills_every_worker_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    (tmp_path / "kills_in_sweeps.py").write_text(
        "import os\ndef attend(q, k, v):\n"
        "    if q.shape[-2] == 200:\n        os.kill(os.getpid(), 9)\n"
        "    return (q @ k.mT).softmax(-1) @ v\n"
    )
    monkeypatch.chdir(tmp_path)
    text = HEAD.replace('"linear"', '"kills_in_sweeps:attend"') + (
        '[[sweep]]\nengine = "dense"\ndraws = 5\nparameters.n = [100, 200, 300, 400]'
    )
    executor = LocalExecutor(2)
    try:
        done = run(read_plan(text, allow=["kills_in_sweeps:attend"]), store, executor)
    finally:
        executor.close()
    assert (done.done, done.failed, done.lost) == (7, 1, 3)
    (row,) = results(store, status="failed").rows(named=True)
    assert (row["n"], row["message"].split(";")[0]) == (200, "its worker died 3 times")


LIMIT = 15.0
"""Seconds in which cells that do not sleep are computed even on a machine that does much else."""
SLEEPER = """
import time
def attend(q, k, v):
    if q.shape[-2] == 200:
        time.sleep(1000)
    return (q @ k.mT).softmax(-1) @ v
"""


@pytest.mark.exhaustive
def test_a_cell_that_takes_too_long_has_failed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    (tmp_path / "sleeps_in_sweeps.py").write_text(SLEEPER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(VerdictCell, "turn_seconds", 0.5)
    text = HEAD.replace('"linear"', '"sleeps_in_sweeps:attend"') + (
        '[[sweep]]\nengine = "dense"\ndraws = 5\nparameters.n = [100, 150, 200, 300, 400, 500, 600]'
    )
    plan = read_plan(text, allow=["sleeps_in_sweeps:attend"])
    executor = LocalExecutor(1, cell_timeout=LIMIT)
    try:
        done = run(plan, store, executor)
    finally:
        executor.close()
    assert (done.done, done.failed, done.lost) == (plan.count - 1, 1, 0)
    (row,) = results(store, status="failed").rows(named=True)
    assert (row["n"], row["seconds"]) == (200, LIMIT)
    assert row["message"] == f"it took longer than {LIMIT:g} s, the limit for a cell"
    assert run(plan, store, Instant()).failed_before == 1, "it is not tried again"
    assert run(plan, store, Instant(), retry_failed=True).done == 1, "but then it is"


@pytest.mark.exhaustive
def test_cells_within_a_limit_in_a_process_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Plan, answers: dict[str, CellResult]
) -> None:
    """A worker of a cluster computes in a child process, which is ended in its place."""
    dies = "    if q.shape[-2] == 400:\n        import os; os._exit(3)\n    return"
    (tmp_path / "sleeps_in_processes.py").write_text(SLEEPER.replace("    return", dies))
    monkeypatch.chdir(tmp_path)
    cells = [cell for _, cell in small if cell.engine == "closed"][:15]
    outcome = work_within(WorkBatch(tuple(cells)), 60.0)
    assert outcome.results is not None
    for cell, result in zip(cells, outcome.results, strict=True):
        assert numbers(result) == numbers(answers[cell.id])
    with pytest.raises(OtherCode):
        work_within(WorkBatch((replace(cells[0], code="0" * 16),)), 20.0)
    name = "sleeps_in_processes:attend"
    text = HEAD.replace('"softmax", "linear"', f'"{name}"') + (
        '[[sweep]]\nengine = "dense"\ndraws = 5\nparameters.n = [100, 400, 200, 300]'
    )
    outcomes = [work_within(WorkBatch((cell,)), LIMIT) for _, cell in read_plan(text, allow=[name])]
    cluster._thread.executor.close()
    assert [outcome.results is None for outcome in outcomes] == [False, True, True, False]
    assert [outcome.is_late for outcome in outcomes] == [False, False, True, False]


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_limits_that_are_none(limit: float) -> None:
    with pytest.raises(UsageError, match="is not a time limit; it must be more than 0 seconds"):
        executor_for(1, None, limit)


def test_never_more_than_two_batches_a_worker_are_out() -> None:
    executor = LocalExecutor(2)
    try:
        plan = read_plan(HEAD + '[[sweep]]\nengine = "closed"\nparameters.n = [100, 200, 300, 400]')
        for _, cell in plan:
            if executor.vacancies:
                executor.submit(WorkBatch((cell,)))
        assert executor.vacancies == 0
        assert sum(len(worker.waiting) for worker in executor._workers) == BATCHES_PER_WORKER * 2
    finally:
        executor.close()


def test_another_version_of_the_code_stops_the_sweep(small: Plan, store: Store) -> None:
    """What came back before is stored; nothing is stored under the name of another version."""
    good, *others = small.parts
    bad = [part.model_copy() for part in others]
    for part in bad:
        part.__dict__["codes"] = dict.fromkeys(part.codes, "0" * 16)
    executor = LocalExecutor(1)
    try:
        with pytest.raises(OtherCode, match="another version of the code for softmax on spike"):
            run(Plan("mixed", "", (good, *bad)), store, executor)
    finally:
        executor.close()
    assert set(frame(store)["code"]) <= set(good.codes.values())
    assert frame(store).height == good.count


def test_stopping_keeps_what_is_being_computed(small: Plan, store: Store) -> None:
    executor, asked = Inline(room=1), False

    def tell(so_far: object) -> None:
        nonlocal asked
        asked = len(executor.taken) >= 3

    done = run(small, store, executor, tell=tell, stop=lambda: asked)
    assert done.stopped
    assert len(executor.taken) == 3
    assert frame(store).height == sum(len(batch.items) for batch in executor.taken)


def test_a_stop_is_heard_while_stored_cells_are_looked_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "LOOKUP_SIZE", 200)
    plan = read_plan(HEAD + '[[sweep]]\nengine = "closed"\nparameters = { n = 100, a1 = "0.5:1.5:500" }')
    run(plan, store, Instant())
    told: list[int] = []
    done = run(plan, store, Instant(), tell=lambda so_far: told.append(so_far.finished), stop=lambda: len(told) > 3)
    assert done.stopped
    assert 0 < done.kept < plan.count


def test_an_estimate_before_a_sweep(small: Plan, answers: dict[str, CellResult], store: Store) -> None:
    before = estimate(small, None, Inline())
    assert (before.cells, before.different, before.stored) == (small.count, len(answers), 0)
    assert before.seconds_from == CostBasis(known=0, tried=6, guessed=0)
    assert before.seconds > 0
    run(small, store, Inline())
    after = estimate(small, store, Inline())
    assert (after.missing, after.seconds) == (0, 0.0)
    more = read_plan(SMALL.replace("seeds = [0, 1]", "seeds = '0:9'"))
    longer = estimate(more, store, Inline())
    assert (longer.missing, longer.seconds_from) == (16, CostBasis(known=2, tried=0, guessed=0))
    dear = sum(answers[cell.id].seconds for _, cell in small if cell.draws and cell.engine == "dense")
    assert longer.seconds > dear


def test_the_shipped_atlas_asks_what_the_atlas_asks(store: Store) -> None:
    (part,) = find_plan("atlas").parts
    assert [each.spelled for each in part.mechanisms] == [each.spelled for each in examples()]
    linear = tuple(mechanism for mechanism in part.mechanisms if mechanism.name == "linear")
    chosen = part.model_copy(update={"mechanisms": linear})
    run(Plan("atlas", "", (chosen,)), store, Inline())
    rows = results(store).rows(named=True)
    assert len(rows) == len(reference_points())
    asked = {(row["mechanism"], row["construction"], row["parameters"]): row for row in rows}
    for mechanism in chosen.mechanisms:
        for point in reference_points().values():
            exact_text = {name: str(value) for name, value in point.parameters.as_json().items()}
            row = asked[mechanism.spelled, point.name, json.dumps(exact_text)]
            try:
                outcome = solve_until_decided(point, mechanism, (DELTA, 1 - DELTA))
            except EngineRefusal:
                assert row["status"] == "refused"
                continue
            assert row["verdict"] == Verdict(point, mechanism, outcome, DELTA).word
            assert (row["distinguish"], row["low"], row["high"]) == (outcome.distinguish, *outcome.interval)


def test_the_shipped_plan_of_the_paper_gives_its_curves(store: Store) -> None:
    plan = find_plan("paper")
    parts = {part.name: part for part in plan.parts}
    small = Plan("paper", plan.text, (parts["a1"], parts["m"]))
    run(small, store, Inline())
    for name in ("a1", "m"):
        fixed = {each: value for each, value in Spike.example.items() if each != name}
        for mechanism in ("softmax", "linear"):
            stored = results(store, sweep=1, mechanism=mechanism).filter(pl.col("part") == name).sort(name)
            values = [json.loads(each)[name] for each in stored["parameters"]]
            curve = closed.evaluate(Spike, mechanism_named(mechanism), Grid(fixed, ({name: values},)))
            assert stored["distinguish"].to_list() == curve.distinguish.tolist()
            assert stored["margin"].to_list() == curve.margin.tolist()
            assert len(values) == {"a1": 261, "m": 40}[name]


def test_two_sweeps_at_once_on_one_store(tmp_path: Path, answers: dict[str, CellResult], small: Plan) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    other = SMALL.replace('name = "small"', 'name = "other"').replace("1e2:1e9:15:log", "1e2:1e9:29:log")
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=_sweep, args=(text, url)) for text in (SMALL, other, SMALL)]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    assert [process.exitcode for process in both] == [0, 0, 0]
    store = open_store(url, check=True)
    ids = frame(store)["id"].to_list()
    wanted = {cell.id for text in (SMALL, other) for _, cell in read_plan(text)}
    assert len(ids) == len(set(ids))
    assert set(ids) == wanted
    rows = {row["id"]: row for row in frame(store).rows(named=True)}
    for key, answer in answers.items():
        assert rows[key]["distinguish"] == answer.findings["distinguish"]


def _sweep(text: str, url: str) -> None:
    run(read_plan(text), open_store(url, create=True, check=True), Inline())


@pytest.mark.parametrize(
    "kills",
    [pytest.param(5, marks=pytest.mark.brief), pytest.param(100, marks=[pytest.mark.exhaustive, pytest.mark.long])],
)
def test_kill_9_at_random_moments(tmp_path: Path, kills: int) -> None:
    program = Path(__file__).parents[1] / "helpers" / "killed_sweeps.py"
    done = subprocess.run(
        [sys.executable, str(program), str(kills), "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= kills
    assert found["lost"] <= BATCHES_PER_WORKER * 2


def test_an_estimate_follows_the_length_of_literal_tokens() -> None:
    plan = read_plan(HEAD + '[[sweep]]\nengine = "dense"\nmechanisms = ["softmax"]\nparameters.n = "1e2:1e4:5:log"')

    class Quadratic(Inline):
        def compute(self, cells: Sequence[VerdictCell]) -> BatchResults | None:
            taken = [1e-6 * int(cell.parameters["n"]) ** 2 for cell in cells[:2]]
            return [make_result(Answer({"engine": "dense"}), seconds, HERE) for seconds in taken]

    found = estimate(plan, None, Quadratic())
    whole = sum(1e-6 * int(cell.parameters["n"]) ** 2 for _, cell in plan)
    assert found.seconds == pytest.approx(whole, rel=0.2)
