"""The answers of cells: one at a time, or the closed form on many at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from separatrix.constructions import Construction, ExactConstruction, construction_named
from separatrix.engines import ENGINES, EngineRefusal, Outcome, exact, solve
from separatrix.errors import one_line
from separatrix.mechanisms.load import mechanism_from
from separatrix.numbers.json import finite
from separatrix.numbers.logforms import spelled
from separatrix.parameters import Grid, SeparatrixError, UsageError
from separatrix.parameters.grid import is_whole
from separatrix.store import Environment, Result, Status
from separatrix.store.rows import now
from separatrix.sweeps.verdict_cells import Cell
from separatrix.verdicts.verdict import word_for

named = cache(mechanism_from)

TOGETHER = 500
"""Cells of the closed form that are computed at once."""


def evaluate(cells: Sequence[Cell], here: Environment) -> Iterator[list[Result]]:
    """The results of cells of one kind, in order, some at a time.

    Whatever a cell raises is its result: it never keeps the others from theirs.
    """
    if in_closed_form(cells[0]):
        for start in range(0, len(cells), TOGETHER):
            yield _together(cells[start : start + TOGETHER], here)
        return
    for cell in cells:
        yield [_alone(cell, here)]


def in_closed_form(cell: Cell) -> bool:
    """Whether cells of this kind are computed many at once."""
    return ENGINES[cell.engine].at_once and not issubclass(
        construction_named(cell.construction), ExactConstruction
    )


def _alone(cell: Cell, here: Environment) -> Result:
    start = time.perf_counter()
    try:
        kind, mechanism = construction_named(cell.construction), named(cell.mechanism)
        point, delta = kind.read(cell.parameters), Fraction(cell.delta)
        sampling = None if cell.draws is None else cell.draws.sampling(delta)
        answer = _answer(solve(point, mechanism, cell.engine, sampling), point.m, delta)
    except EngineRefusal as refusal:
        answer = {"status": Status.REFUSED, "message": str(refusal)}
    except SeparatrixError as error:
        answer = {"status": Status.FAILED, "message": str(error)}
    except (Exception, SystemExit) as error:  # whatever a stranger's mechanism raises
        answer = {"status": Status.FAILED, "message": f"{type(error).__name__}: {one_line(error)}"}
    return _result(answer, time.perf_counter() - start, here)


def _together(cells: Sequence[Cell], here: Environment) -> list[Result]:
    """The closed form on all of them; one at a time where some cannot be read or have no closed form.

    A cell has the same numbers whichever others it is computed with.
    """
    start = time.perf_counter()
    kind, first = construction_named(cells[0].construction), cells[0].parameters
    if any(cell.parameters.keys() != first.keys() for cell in cells):
        return [_alone(cell, here) for cell in cells]
    columns = {name: [cell.parameters[name] for cell in cells] for name in first}
    words = {name: set(columns.pop(name)) for name in first if not _is_number(kind, name)}
    if any(len(values) > 1 for values in words.values()):
        return [_alone(cell, here) for cell in cells]
    fixed = {name: values.pop() for name, values in words.items()}
    try:
        found = exact.evaluate_each(kind, named(cells[0].mechanism), Grid(fixed, (columns,))).outcomes()
    except Exception:  # of one cell; which, and why, comes out when they are computed one by one
        return [_alone(cell, here) for cell in cells]
    answers = [
        {"status": Status.REFUSED, "message": exact.UNDECIDED}
        if outcome is None
        else _answer(outcome, int(cell.parameters["m"]), Fraction(cell.delta))
        for cell, outcome in zip(cells, found, strict=True)
    ]
    share = (time.perf_counter() - start) / len(cells)
    return [_result(answer, share, here) for answer in answers]


def _answer(outcome: Outcome, m: int, delta: Fraction) -> dict[str, Any]:
    return {
        "status": Status.DONE,
        "verdict": word_for(outcome, m, delta),
        "engine": outcome.engine,
        "evidence": outcome.evidence,
        **{name: _spelled(getattr(outcome, name)) for name in ("p0", "p1", "q")},
        **{name: getattr(outcome, name) for name in ("distinguish", "fire_d0", "fire_d1")},
        "low": outcome.interval[0],
        "high": outcome.interval[1],
        **{name: finite(getattr(outcome, name)) for name in ("margin", "bits")},
    }


def _spelled(p: Fraction | float) -> str:
    return spelled(p) if isinstance(p, Fraction) else repr(p)


def _result(answer: dict[str, Any], seconds: float, here: Environment) -> Result:
    return Result(seconds=seconds, finished=now(), environment=here, **answer)


@cache
def _is_number(kind: type[Construction], name: str) -> bool:
    try:
        is_whole(kind.schema, name)
    except UsageError:
        return False
    return True
