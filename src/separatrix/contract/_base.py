"""What a check is: it returns, raises `Broken` with what is wrong, or raises `Skipped` with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from separatrix.errors import one_line
from separatrix.mechanisms import Mechanism

Check = Callable[[Mechanism], None]

CHECKS: dict[str, Check] = {}
"""Every check of the contract, by name, in the order they are run."""


class Broken(Exception):
    """The mechanism breaks the contract; the message says in one line what is wrong, with numbers."""


class Skipped(Exception):
    """The check does not apply to this mechanism; the message says why."""


@dataclass(frozen=True)
class Examination:
    """How a mechanism came out of every check."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """What is wrong, by the name of the check that found it."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why it does not apply, by the name of the check."""

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return not self.failed


def check(function: Check) -> Check:
    """Register a check of the contract."""
    CHECKS[function.__name__] = function
    return function


def run(name: str, mechanism: Mechanism) -> None:
    """Run one check, seeded and with gradients on; the caller's random numbers stay as they were."""
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
        torch.manual_seed(0)
        CHECKS[name](mechanism)


def examine(mechanism: Mechanism) -> Examination:
    """Run every check; an exception inside the mechanism is a failed check and does not come out.

    >>> from separatrix.mechanisms import mechanism_named
    >>> examine(mechanism_named("softmax")).failed
    {}
    """
    found = Examination()
    for name in CHECKS:
        try:
            run(name, mechanism)
        except Skipped as reason:
            found.skipped[name] = one_line(reason)
        except Broken as what:
            found.failed[name] = one_line(what)
        except Exception as error:
            found.failed[name] = f"raised {type(error).__name__}: {one_line(error)}"
        else:
            found.passed.append(name)
    return found
