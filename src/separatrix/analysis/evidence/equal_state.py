"""The same comparison at equal state: keys so wide that every mechanism carries as much as the first.

Equal key width is not equal state: a cache of keys and values grows with the tokens, a state of width by
width does not. What is compared is what the layers hold after the longest input of the task.
"""

from __future__ import annotations

from dataclasses import replace

from separatrix.analysis.evidence.estimates import differences
from separatrix.analysis.evidence.found import EqualState, Learned
from separatrix.analysis.evidence.protocol import Experiment, learned
from separatrix.analysis.evidence.runs import Laboratory
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, Mechanism
from separatrix.training.learning import build_model
from separatrix.training.tasks import Setting, Task

MOST = 1024
"""The widest keys that are tried."""


def require_state(asked: Experiment) -> None:
    """Refuse a first mechanism that carries nothing."""
    first = asked.mechanisms[0]
    if first.causality is Causality.NEVER:
        raise UsageError(f"{first.spelled} carries no state from token to token; name another one first")
    if len(asked.mechanisms) == 1:
        raise UsageError("at equal state to what? Name the mechanism to compare with first: softmax,delta")


def compared(asked: Experiment, found: Learned, laboratory: Laboratory) -> EqualState:
    """All but the first mechanism again, by the same protocol, with keys of the width that is chosen."""
    task, reference = asked.task, asked.mechanisms[0]
    wanted = carried(task, reference, asked.setting)
    at = {
        mechanism.spelled: setting_with(task, mechanism, asked.setting, wanted)
        for mechanism in asked.mechanisms[1:]
        if mechanism.causality is not Causality.NEVER
    }
    wider = [
        replace(asked, mechanisms=(mechanism,), setting=at[mechanism.spelled])
        for mechanism in asked.mechanisms[1:]
        if mechanism.spelled in at
    ]
    name = f"learn {task.spelling} at equal state"
    again = [each.mechanisms[0] for each in learned(wider, laboratory, name)]
    scores = {
        each.mechanism: {run.seed: run.score for run in each.runs} for each in (found.mechanisms[0], *again)
    }
    left_out = tuple(mechanism.spelled for mechanism in asked.mechanisms[1:] if mechanism.spelled not in at)
    return EqualState(reference.spelled, task.max_tokens, wanted, tuple(again), differences(scores), left_out)


def carried(task: Task, mechanism: Mechanism, setting: Setting) -> int:
    """The bytes that a model carries after the longest input of a task, exactly.

    >>> from separatrix.mechanisms import mechanism_named
    >>> from separatrix.training.tasks import task_named
    >>> mqar = task_named("mqar").read({"pairs": 8})
    >>> plain = mqar.default_setting(conv=0, key_width=16)
    >>> [carried(mqar, mechanism_named(name), plain) for name in ("softmax", "delta")]
    [7688, 4104]
    """
    return build_model(task, mechanism, setting).state_bytes(task.max_tokens)


def setting_with(task: Task, mechanism: Mechanism, setting: Setting, wanted: int) -> Setting:
    """The setting with keys of the width whose state is nearest to `wanted` bytes, as a ratio."""
    if mechanism.fixed_width is not None:
        return setting
    step = 2 if setting.rope else 1  # rotary places turn pairs of channels

    def at(width: int) -> Setting:
        return Setting.read({**setting.shown(), "key_width": width * step})

    def size(width: int) -> int:
        return carried(task, mechanism, at(width))

    low, high = 1, 1
    while size(high) < wanted and high * step < MOST:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if size(middle) >= wanted else (middle, high)
    return at(min((low, high), key=lambda width: max(size(width) / wanted, wanted / size(width))))
