"""The registry of checks, and running them: a check returns, raises `Broken` with the fault, or `Skipped`."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field, replace

import torch

from separatrix.contract.calls import LargestCall, largest_call, random_extras
from separatrix.core.contexts import set_within
from separatrix.core.errors import describe_failure, describe_failure_briefly, one_line
from separatrix.core.tensors import memory_kept, one_thread
from separatrix.mechanisms import Mechanism

Check = Callable[[Mechanism], None]

CHECKS: dict[str, Check] = {}
"""Every check of the contract, by name, in the order they are run: after the checks they rest on."""

RESTS_ON: dict[str, tuple[str, ...]] = {}
"""The checks that must pass for a check to be conclusive, by its name."""

GROUND = "repeatable"
"""The check that every other rests on unless it names its own."""
FINITENESS = ("finite", "finite_in_16_bits")
"""The checks that report results that are not finite; others leave that to them."""
PRECISION = "double_precision"
"""The check that reports computation in float32; others then require no more than float32."""

_is_float32_enough = ContextVar("is_float32_enough", default=False)


class Broken(Exception):
    """The mechanism breaks the contract; the message states the fault in one line, with numbers."""


class NotFinite(Broken):
    """There are numbers that are not finite. Only the checks in FINITENESS report this."""


class Skipped(Exception):
    """The check does not apply to this mechanism; the message states the reason."""


@dataclass(frozen=True)
class Examination:
    """The outcome of every check for one mechanism."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """The fault, by the name of the check that detected it. Each fault is reported once, at its root."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The reason why a check does not apply, by its name."""
    not_tried: dict[str, str] = field(default_factory=dict)
    """The failed check that a check rests on, by its name."""
    raised: dict[str, str] = field(default_factory=dict)
    """The error that the mechanism raised, in short, by the name of the check that failed with it."""
    longest: int = 0
    """The largest number of tokens in a call."""
    widest: int = 0
    """The largest width of queries and keys in a call."""

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @classmethod
    def of_uncallable(cls, failed: dict[str, str]) -> Examination:
        """Return the examination of a mechanism that cannot be called at all: no other check was tried."""
        root = next(iter(failed))
        return cls(failed=failed, not_tried={name: root for name in CHECKS if name not in failed})

    def after_crash(self, name: str, cause: str) -> Examination:
        """Return the examination of a mechanism that ended the process in a check: no later check was tried."""
        crashed = deepcopy(self)  # this one is still being filled in
        crashed.failed[name] = cause
        decided = {*self.passed, *crashed.failed, *self.skipped, *self.not_tried}
        crashed.not_tried.update({later: name for later in CHECKS if later not in decided})
        return crashed


def required_precision() -> torch.dtype:
    """Return the most precise format whose rounding results have to reach."""
    return torch.float32 if _is_float32_enough.get() else torch.float64


def check(*rests_on: str) -> Callable[[Check], Check]:
    """Register a check with the names of those it rests on: GROUND by default, none if "" is given."""

    def register(function: Check) -> Check:
        name = function.__name__
        CHECKS[name], RESTS_ON[name] = function, tuple(filter(None, rests_on or (GROUND,)))
        return function

    return register


def sort_checks() -> None:
    """Sort the registered checks so that each comes after those it rests on."""
    # Modules register in import order, and a check may rest on one of a module that is imported later.
    pending = dict(CHECKS)
    CHECKS.clear()
    while pending:
        name = next(name for name in pending if all(base in CHECKS for base in RESTS_ON[name]))
        CHECKS[name] = pending.pop(name)


def find_foundations(name: str) -> list[str]:
    """Return all checks that a check rests on, directly or not, in the order they are run."""
    foundations: set[str] = set()
    frontier = {name}
    while frontier:
        frontier = {base for above in frontier for base in RESTS_ON[above]} - foundations
        foundations |= frontier
    return [name for name in CHECKS if name in foundations]


RANDOM_EXTRAS = (False, True)
"""Mechanisms with extras are checked with the default extras, then with random ones."""


def run(name: str, mechanism: Mechanism) -> None:
    """Run one check with a fixed seed and with gradients on; torch's global generator is not changed."""
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad(), one_thread():
        torch.manual_seed(0)
        # Mechanisms without extras would only repeat the same calls.
        for is_random in RANDOM_EXTRAS if mechanism.extras else (False,):
            suffix = " with random extras" if is_random else ""
            try:
                with set_within(random_extras, is_random):
                    _run_at_its_precision(name, mechanism)
            except Skipped:
                raise
            except Broken as fault:
                raise type(fault)(f"{fault}{suffix}") from fault.__cause__
            except Exception as error:  # a user's mechanism may raise anything
                raise Broken(f"{describe_failure(error)}{suffix}") from error


def _run_at_its_precision(name: str, mechanism: Mechanism) -> None:
    """Run a check; if it fails for a mechanism that computes in float32, run it again at that precision."""
    try:
        CHECKS[name](mechanism)
    except Broken:
        # Computing in float32 is one fault. Only PRECISION and checks that rest on it report it.
        rests_on_precision = name == PRECISION or PRECISION in find_foundations(name)
        if rests_on_precision or not _computes_in_float32(mechanism):
            raise
        with set_within(_is_float32_enough, True):  # the precision of float32 suffices, also of float64 results
            CHECKS[name](mechanism)


def _computes_in_float32(mechanism: Mechanism) -> bool:
    """Return whether results for float64 tokens are less precise than float64."""
    try:
        CHECKS[PRECISION](mechanism)
    except Broken:
        return True
    except Exception:  # reported by the check in which it was raised
        return False
    return False


def examine(
    mechanism: Mechanism,
    tell: Callable[[str], None] = lambda _: None,
    on_update: Callable[[str, Examination], None] = lambda *_: None,
) -> Examination:
    """Run every check; an exception inside the mechanism is a failed check and is not propagated.

    A check that rests on a failed one is not tried. `tell` is called with the name of each check before it
    is run, and `on_update` with the name and the examination up to there.

    >>> from separatrix.mechanisms import mechanism_named
    >>> examine(mechanism_named("softmax")).failed
    {}
    """
    largest = LargestCall()
    with memory_kept(), set_within(largest_call, largest):
        examination = _run_checks(mechanism, tell, on_update)
    return replace(examination, longest=largest.tokens, widest=largest.width)


def _run_checks(
    mechanism: Mechanism, tell: Callable[[str], None], on_update: Callable[[str, Examination], None]
) -> Examination:
    examination = Examination()
    failed, not_tried = examination.failed, examination.not_tried
    for name in CHECKS:
        roots = {**not_tried, **{root: root for root in failed}}
        # The root of a check that was not tried itself: the user has a single fault to repair.
        root = next((roots[base] for base in find_foundations(name) if base in roots), None)
        if root is not None:
            not_tried[name] = root
            continue
        tell(name)
        on_update(name, examination)
        try:
            run(name, mechanism)
        except Skipped as reason:
            examination.skipped[name] = one_line(reason)
        except Broken as fault:
            owner = next((owner for owner in FINITENESS if owner in failed), None)
            if isinstance(fault, NotFinite) and owner is not None:
                not_tried[name] = owner
                continue
            failed[name] = one_line(fault)
            if fault.__cause__ is not None:
                examination.raised[name] = describe_failure_briefly(fault.__cause__)
        else:
            examination.passed.append(name)
    return examination


def find_root(name: str, fault: Broken, mechanism: Mechanism) -> str | None:
    """Return the first failing check that a failed one rests on: it reports the fault."""
    owners = FINITENESS[: FINITENESS.index(name)] if name in FINITENESS else FINITENESS
    for base in (*find_foundations(name), *(owners if isinstance(fault, NotFinite) else ())):
        try:
            run(base, mechanism)
        except Skipped:
            continue
        except Broken:
            return base
    return None
