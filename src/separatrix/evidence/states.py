"""What a mechanism has to carry from token to token, so that mechanisms are compared at equal state."""

from __future__ import annotations

from separatrix.learning import tokens_of
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.features._base import FeatureMechanism
from separatrix.tasks import Setting, Task

FLOAT = 4
"""Bytes of a number."""


def state_bytes(task: Task, mechanism: Mechanism, setting: Setting, measured: int | None) -> int | None:
    """The bytes that a model carries after the longest input of a task.

    Measured, but for feature maps: a layer keeps their keys and values, where the sum of `phi(k) vᵀ`, as
    large at any length, is all they need. That sum is counted instead, where it is smaller.

    >>> from separatrix.mechanisms import mechanism_named
    >>> from separatrix.tasks import task_named
    >>> mqar = task_named("mqar").read({"pairs": 32})
    >>> setting = mqar.default_setting(key_width=8, conv=0)
    >>> kept = 96 * (8 + 64) * 4
    >>> [state_bytes(mqar, mechanism_named(name), setting, kept) for name in ("softmax", "elu")]
    [27648, 2080]
    """
    if measured is None or not isinstance(mechanism, FeatureMechanism):
        return measured
    value = setting.width // setting.heads
    key, layers = setting.key_width or value, setting.depth * setting.heads * FLOAT
    sums = mechanism.sums(key, value)
    if sums is None:
        return measured
    return min(measured, measured - layers * (tokens_of(task) * (key + value) - sums))
