"""A comparison at equal state: keys of such a width that every mechanism carries as much as the first.

Equal key width is not equal state: a cache of keys and values grows with the tokens, a state of width by
width does not. States are compared after the longest input of the task.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from separatrix.analysis.evidence.estimates import compare_pairs
from separatrix.analysis.evidence.protocol import Experiment, run_experiments
from separatrix.analysis.evidence.runs import TrainingSession
from separatrix.analysis.evidence.training_result import EqualState, EqualStateEvidence, TrainingResult
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, Mechanism
from separatrix.training.learning import build_model
from separatrix.training.tasks import Setting, Task

MAX_KEY_WIDTH = 1024
"""The widest keys that are tried."""


def require_state(experiment: Experiment) -> None:
    """Raise UsageError if there is no state to compare with."""
    first = experiment.mechanisms[0]
    if first.causality is Causality.NEVER:
        raise UsageError(f"{first.spelled} carries no state from token to token; name another one first")
    if len(experiment.mechanisms) == 1:
        raise UsageError("equal state needs two mechanisms; name the one to compare with first: softmax,delta")


def compare_at_equal_state(experiment: Experiment, result: TrainingResult, session: TrainingSession) -> EqualState:
    """Train all but the first mechanism again by the same protocol, with keys of another width."""
    task, (reference, *other_mechanisms) = experiment.task, experiment.mechanisms
    target = state_size(task, reference, experiment.setting)
    experiments = [
        replace(experiment, mechanisms=(mechanism,), setting=match_state(task, mechanism, experiment.setting, target))
        for mechanism in other_mechanisms
        if mechanism.causality is not Causality.NEVER
    ]
    results = run_experiments(experiments, session, f"learn {task.spelling} at equal state")
    evidence = [second_result.mechanisms[0] for second_result in results]
    scores = {item.mechanism: {run.seed: run.score for run in item.runs} for item in (result.mechanisms[0], *evidence)}
    mechanisms = tuple(
        EqualStateEvidence(item, item.setting.keys, None if item.state_bytes is None else item.state_bytes / target)
        for item in evidence
    )
    stateless = tuple(mechanism.spelled for mechanism in other_mechanisms if mechanism.causality is Causality.NEVER)
    return EqualState(reference.spelled, task.max_tokens, target, mechanisms, compare_pairs(scores), stateless)


def state_size(task: Task, mechanism: Mechanism, setting: Setting) -> int:
    """Return the bytes that a model carries after the longest input of a task, exactly.

    >>> from separatrix.mechanisms import mechanism_named
    >>> from separatrix.training.tasks import task_named
    >>> mqar = task_named("mqar").read({"pairs": 8})
    >>> plain = mqar.default_setting(conv=0, key_width=16)
    >>> [state_size(mqar, mechanism_named(name), plain) for name in ("softmax", "delta")]
    [7688, 4104]
    """
    return build_model(task, mechanism, setting).state_bytes(task.max_tokens)


def match_state(task: Task, mechanism: Mechanism, setting: Setting, target: int) -> Setting:
    """Return the setting with keys of the width whose state is nearest to `target` bytes, as a ratio."""
    if mechanism.fixed_width is not None:
        return setting
    step = 2 if setting.rope else 1  # rotary positions turn pairs of channels

    def with_width(width: int) -> Setting:
        return Setting.read({**setting.as_json(), "key_width": width * step})

    @cache
    def size(width: int) -> int:
        return state_size(task, mechanism, with_width(width))

    # The state grows with the width, so that doubling and bisection find both neighbours of the target.
    low, high = 1, 1
    while size(high) < target and high * step < MAX_KEY_WIDTH:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if size(middle) >= target else (middle, high)
    return with_width(min((low, high), key=lambda width: max(size(width) / target, target / size(width))))
