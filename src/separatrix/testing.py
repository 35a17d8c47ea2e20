"""The contract as a pytest class, for mechanisms of your own.

    from separatrix.testing import MechanismContract

    class TestMine(MechanismContract):
        @pytest.fixture
        def mechanism(self):
            return my_attention

The fixture returns a `separatrix.mechanisms.Mechanism`, or a function or nn.Module that is called as
`(q, k, v, counts=None, causal=False)`; one without `counts` or `causal` (or `is_causal`) does not support
them. Properties that a function or module does not have are declared by attributes: `causality = "always"`,
`length_free`, `normalised`, `linear_in_values`, `twice_differentiable = False`,
`fixed_width = 64` and others (`separatrix.mechanisms.signatures.SAYS`). Each fault fails one test: tests that
rest on it are skipped. Other inputs, `first`, `present` and extras of its own, are described in
`separatrix.mechanisms.custom`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from separatrix.contract import CHECKS, Broken, Skipped, find_root, run
from separatrix.core.errors import user_traceback
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.custom import wrap

__all__ = ["MechanismContract"]


class MechanismContract:
    """Subclass it under a name that starts with Test, and define the fixture `mechanism`."""

    @pytest.fixture
    def mechanism(self) -> Any:
        """Return the mechanism to test."""
        pytest.fail("MechanismContract needs a fixture `mechanism` that returns the mechanism to test", pytrace=False)


def _find_fault(name: str, mechanism: Mechanism) -> Broken | None:
    """Return the fault that a check finds, if any; skip the test if the check does not apply."""
    try:
        run(name, mechanism)
    except Skipped as error:
        reason = str(error)
    except Broken as fault:
        return fault
    else:
        return None
    # Outside of `except`: pytest would print the exception being handled as well.
    pytest.skip(reason)


def _make_test(name: str) -> Callable[[MechanismContract, Any], None]:
    def test(self: MechanismContract, mechanism: Any) -> None:
        wrapped_mechanism = wrap(mechanism)
        fault = _find_fault(name, wrapped_mechanism)
        if fault is None:
            return
        root = find_root(name, fault, wrapped_mechanism)
        if root is not None:
            pytest.skip(f"not tried, since {root} failed")
        if fault.__cause__ is not None:
            # The user's own error, from the user's own lines on.
            raise fault.__cause__.with_traceback(user_traceback(fault.__cause__)) from None
        pytest.fail(f"{name}: {fault}", pytrace=False)

    test.__name__ = f"test_{name}"
    test.__qualname__ = f"{MechanismContract.__qualname__}.{test.__name__}"
    test.__doc__ = CHECKS[name].__doc__
    return test


for _name in CHECKS:
    setattr(MechanismContract, f"test_{_name}", _make_test(_name))
