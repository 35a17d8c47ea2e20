"""The contract as a pytest class, for mechanisms of your own.

    from separatrix.testing import MechanismContract

    class TestMine(MechanismContract):
        @pytest.fixture
        def mechanism(self):
            return my_attention

The fixture gives a `separatrix.mechanisms.Mechanism`, or a function or nn.Module that is called as
`(q, k, v, counts=None, causal=False)`; one without `counts` or `causal` is taken not to have them. What
else it takes, `first`, `present` and extras of its own, is described in `separatrix.mechanisms.custom`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from separatrix.contract import CHECKS, Broken, Skipped, run
from separatrix.mechanisms.custom import wrap

__all__ = ["MechanismContract"]


class MechanismContract:
    """Subclass it under a name that starts with Test, and give the fixture `mechanism`."""

    @pytest.fixture
    def mechanism(self) -> Any:
        """What is put to the test."""
        pytest.fail("MechanismContract needs a fixture `mechanism` that returns what to test", pytrace=False)


def _method(name: str) -> Callable[[MechanismContract, Any], None]:
    def test(self: MechanismContract, mechanism: Any) -> None:
        try:
            run(name, wrap(mechanism))
        except Skipped as reason:
            pytest.skip(str(reason))
        except Broken as what:
            pytest.fail(f"{name}: {what}", pytrace=False)

    test.__name__ = f"test_{name}"
    test.__qualname__ = f"{MechanismContract.__qualname__}.{test.__name__}"
    test.__doc__ = CHECKS[name].__doc__
    return test


for _name in CHECKS:
    setattr(MechanismContract, f"test_{_name}", _method(_name))
