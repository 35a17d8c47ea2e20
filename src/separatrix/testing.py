"""The contract as a pytest class, for mechanisms of your own.

    from separatrix.testing import MechanismContract

    class TestMine(MechanismContract):
        @pytest.fixture
        def mechanism(self):
            return my_attention

The fixture gives a `separatrix.mechanisms.Mechanism`, or a function or nn.Module that is called as
`(q, k, v, counts=None, causal=False)`; one without `counts` or `causal` (or `is_causal`) is taken not to have
them. What a function or module does not keep it says by attributes: `causality = "always"`, `length_free`,
`normalised`, `linear_in_values`, `twice_differentiable = False`, `fixed_width = 64` and others
(`separatrix.mechanisms.signatures.SAYS`). One fault fails one test: tests that rest on it are skipped.
What else it takes, `first`, `present` and extras of its own, is described in `separatrix.mechanisms.custom`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from separatrix.contract import CHECKS, Broken, Skipped, root_of, run
from separatrix.core.errors import user_traceback
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.custom import wrap

__all__ = ["MechanismContract"]


class MechanismContract:
    """Subclass it under a name that starts with Test, and give the fixture `mechanism`."""

    @pytest.fixture
    def mechanism(self) -> Any:
        """What is put to the test."""
        pytest.fail("MechanismContract needs a fixture `mechanism` that returns what to test", pytrace=False)


def _broken(name: str, mechanism: Mechanism) -> Broken | None:
    """What a check finds wrong, if anything: told outside of any `except`, so that pytest prints it once."""
    try:
        run(name, mechanism)
    except Skipped as reason:
        why = str(reason)
    except Broken as what:
        return what
    else:
        return None
    pytest.skip(why)


def _method(name: str) -> Callable[[MechanismContract, Any], None]:
    def test(self: MechanismContract, mechanism: Any) -> None:
        wrapped = wrap(mechanism)
        what = _broken(name, wrapped)
        if what is None:
            return
        root = root_of(name, what, wrapped)
        if root is not None:
            pytest.skip(f"not tried, since {root} failed")
        if what.__cause__ is not None:
            raise what.__cause__.with_traceback(user_traceback(what.__cause__)) from None
        pytest.fail(f"{name}: {what}", pytrace=False)

    test.__name__ = f"test_{name}"
    test.__qualname__ = f"{MechanismContract.__qualname__}.{test.__name__}"
    test.__doc__ = CHECKS[name].__doc__
    return test


for _name in CHECKS:
    setattr(MechanismContract, f"test_{_name}", _method(_name))
