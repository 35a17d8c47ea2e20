"""What a check is: it returns, raises `Broken` with what is wrong, or raises `Skipped` with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import torch

from separatrix.contract.calls import extras_drawn, sizes_called
from separatrix.core.errors import describe_failure, describe_failure_briefly, one_line
from separatrix.core.tensors import memory_kept, one_thread
from separatrix.mechanisms import Mechanism

Check = Callable[[Mechanism], None]

CHECKS: dict[str, Check] = {}
"""Every check of the contract, by name, in the order they are run: after what they rest on."""

RESTS_ON: dict[str, tuple[str, ...]] = {}
"""The checks that must hold for a check to tell anything, by its name."""

GROUND = "repeatable"
"""What every check rests on unless it says otherwise."""
NUMBERS = ("finite", "finite_in_16_bits")
"""The checks that own every result that is not finite."""
PRECISION = "double_precision"
"""The check that owns what is computed in float32: others then ask for no more than that."""

_in_float32 = ContextVar("in_float32", default=False)


class Broken(Exception):
    """The mechanism breaks the contract; the message says in one line what is wrong, with numbers."""


class NotFinite(Broken):
    """There are numbers that are not finite: told once, by the check whose matter that is."""


class Skipped(Exception):
    """The check does not apply to this mechanism; the message says why."""


@dataclass(frozen=True)
class Examination:
    """How a mechanism came out of every check."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """What is wrong, by the name of the check that found it: each fault once, by its root."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why it does not apply, by the name of the check."""
    not_tried: dict[str, str] = field(default_factory=dict)
    """The failed check that it rests on, by the name of the check."""
    raised: dict[str, str] = field(default_factory=dict)
    """How the mechanism raised an error, in short, by the name of the check that failed for it."""
    longest: int = 0
    """The most tokens that it was called with."""
    widest: int = 0
    """The widest queries and keys that it was called with."""

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return not self.failed


@contextmanager
def in_float32() -> Iterator[None]:
    """Hold results to what float32 gives, also where tokens are in float64."""
    before = _in_float32.set(True)
    try:
        yield
    finally:
        _in_float32.reset(before)


def least_precise() -> torch.dtype:
    """The format that results are held to at the most."""
    return torch.float32 if _in_float32.get() else torch.float64


def check(*rests_on: str) -> Callable[[Check], Check]:
    """Register a check, with the names of those it rests on: GROUND if none is named, none if ""."""

    def register(function: Check) -> Check:
        name = function.__name__
        CHECKS[name], RESTS_ON[name] = function, tuple(filter(None, rests_on or (GROUND,)))
        return function

    return register


def put_in_order() -> None:
    """Sort the checks, so that each comes after those it rests on; once all are registered."""
    waiting = dict(CHECKS)
    done: dict[str, Check] = {}
    while waiting:
        name = next(name for name in waiting if all(each in done for each in RESTS_ON[name]))
        done[name] = waiting.pop(name)
    CHECKS.clear()
    CHECKS.update(done)


def foundations(name: str) -> Iterator[str]:
    """All that a check rests on, at first or second hand, the first to be run first."""
    below: set[str] = set()
    new = [name]
    while new:
        new = [each for one in new for each in RESTS_ON[one] if each not in below]
        below.update(new)
    yield from (each for each in CHECKS if each in below)


EXTRAS_DRAWN = (False, True)
"""Whether extras are drawn: mechanisms with extras are checked with their defaults, then with drawn ones."""


def run(name: str, mechanism: Mechanism) -> None:
    """Run one check, seeded and with gradients on; the caller's random numbers stay as they were."""
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad(), one_thread():
        torch.manual_seed(0)
        for drawn in EXTRAS_DRAWN if mechanism.extras else (False,):
            given = " with drawn extras" if drawn else ""
            try:
                with extras_drawn(drawn):
                    _ask(name, mechanism)
            except Skipped:
                raise
            except Broken as what:
                raise type(what)(f"{what}{given}") from what.__cause__
            except Exception as error:  # a stranger's mechanism may raise anything
                raise Broken(f"{describe_failure(error)}{given}") from error


def _ask(name: str, mechanism: Mechanism) -> None:
    """Run a check; one that fails again within what float32 leaves, if that is all that is computed in."""
    try:
        CHECKS[name](mechanism)
    except Broken:
        if name == PRECISION or PRECISION in foundations(name) or not _computes_in_less(mechanism):
            raise
        with in_float32():
            CHECKS[name](mechanism)


def _computes_in_less(mechanism: Mechanism) -> bool:
    """Whether float64 tokens are attended to in less than float64."""
    try:
        CHECKS[PRECISION](mechanism)
    except Broken:
        return True
    except Exception:  # whatever a stranger raises is told by the check it was raised in
        return False
    return False


def ended_in(found: Examination, name: str, what: str) -> Examination:
    """The examination of a mechanism that ended the process in a check: no further one was tried."""
    tried = {*found.passed, *found.failed, *found.skipped, *found.not_tried, name}
    untried = {each: name for each in CHECKS if each not in tried}
    return replace(
        found,
        passed=[*found.passed],
        failed={**found.failed, name: what},
        skipped={**found.skipped},
        not_tried={**found.not_tried, **untried},
    )


def not_called(failed: dict[str, str]) -> Examination:
    """The examination of a mechanism that cannot be called at all: nothing else was tried."""
    root = next(iter(failed))
    return Examination(failed=failed, not_tried={name: root for name in CHECKS if name not in failed})


def examine(
    mechanism: Mechanism,
    tell: Callable[[str], None] = lambda _: None,
    so_far: Callable[[str, Examination], None] = lambda *_: None,
) -> Examination:
    """Run every check; an exception inside the mechanism is a failed check and does not come out.

    A check that rests on one that failed is not tried. `tell` hears of each check before it is run, and
    `so_far` gets its name with the examination up to there.

    >>> from separatrix.mechanisms import mechanism_named
    >>> examine(mechanism_named("softmax")).failed
    {}
    """
    with memory_kept(), sizes_called() as most:
        found = _examined(mechanism, tell, so_far)
    return replace(found, longest=most.tokens, widest=most.width)


def _examined(
    mechanism: Mechanism, tell: Callable[[str], None], so_far: Callable[[str, Examination], None]
) -> Examination:
    found = Examination()
    for name in CHECKS:
        roots = {**found.not_tried, **{each: each for each in found.failed}}
        root = next((roots[foundation] for foundation in foundations(name) if foundation in roots), None)
        if root is not None:
            found.not_tried[name] = root
            continue
        tell(name)
        so_far(name, found)
        try:
            run(name, mechanism)
        except Skipped as reason:
            found.skipped[name] = one_line(reason)
        except Broken as what:
            owner = next((each for each in NUMBERS if each in found.failed), None)
            if isinstance(what, NotFinite) and owner is not None:
                found.not_tried[name] = owner
                continue
            found.failed[name] = one_line(what)
            if what.__cause__ is not None:
                found.raised[name] = describe_failure_briefly(what.__cause__)
        else:
            found.passed.append(name)
    return found


def root_of(name: str, what: Broken, mechanism: Mechanism) -> str | None:
    """The check that a failed one rests on and that fails itself, if any: the fault is told there."""
    owners = NUMBERS[: NUMBERS.index(name)] if name in NUMBERS else NUMBERS
    for each in (*foundations(name), *(owners if isinstance(what, NotFinite) else ())):
        try:
            run(each, mechanism)
        except Skipped:
            continue
        except Broken:
            return each
    return None
