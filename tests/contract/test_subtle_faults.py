"""The contract finds what is wrong only here and there, and does not accuse what is merely unusual."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from correct_mechanisms import CORRECT, Projected, by_distance, causal_alone, causal_by_order, squashed
from separatrix.contract import Broken, examine, run
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality
from separatrix.mechanisms.custom import wrap
from separatrix.mechanisms.load import mechanism_from
from subtly_broken_mechanisms import SUBTLE, float32_inside


def _name(x: object) -> str:
    return x if isinstance(x, str) else str(getattr(x, "__name__", x))


ONE_OF_EACH = [(broken, name) for name, broken in {name: broken for broken, name in reversed(SUBTLE)}.items()]
"""The first subtle fault of each check."""


@pytest.mark.parametrize(("broken", "name"), SUBTLE, ids=_name)
def test_the_check_of_a_subtle_fault_fails(broken: Callable[..., Any], name: str) -> None:
    with pytest.raises(Broken):
        run(name, wrap(broken))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("broken", "name"), ONE_OF_EACH, ids=_name)
def test_what_is_subtly_broken_is_named_once(broken: Callable[..., Any], name: str) -> None:
    found = examine(wrap(broken))
    assert set(found.failed) == {name}, found
    assert set(found.not_tried.values()) <= {name}


@pytest.mark.exhaustive
@pytest.mark.parametrize("correct", CORRECT, ids=_name)
def test_what_is_correct_is_not_accused(correct: Callable[..., Any]) -> None:
    found = examine(wrap(correct))
    assert found.failed == {}
    assert found.not_tried == {}
    assert len(found.passed) >= 14


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_roundings_that_many_results_share_are_no_larger_logits(seed: int, batch_first: bool) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run("logits_in_16_bits", wrap(nn.MultiheadAttention(32, 4, batch_first=batch_first)))


def test_float32_inside_is_told_once_and_the_rest_is_asked() -> None:
    found = examine(wrap(float32_inside))
    asked = {"batch_independence", "causality", "lengths", "layout", "prefix", "half_precision"}
    assert asked <= set(found.passed)
    run("batch_independence", wrap(float32_inside))
    with pytest.raises(Broken, match=r"off by .*, allowed 8e-06"):
        run("batch_independence", wrap(lambda q, k, v: float32_inside(q, k, v) + 1e-3 * v.mean(0)))


def test_what_does_not_run_in_16_bits_is_said_with_the_users_line() -> None:
    found = examine(wrap(by_distance))
    told = r"it does not run in bfloat16: raised NotImplementedError: .* \(line \d+ of correct_mechanisms\.py"
    in_16_bits = ["form_in_16_bits", "finite_in_16_bits", "half_precision", "long_in_16_bits"]
    assert all(re.match(told, found.skipped[name]) for name in in_16_bits)
    assert {"finite", "causality", "gradient_in_float32", "nothing_dropped"} <= set(found.passed)


def test_it_is_known_how_large_the_inputs_were_and_on_how_many_tokens_it_raised() -> None:
    found = examine(wrap(causal_alone))
    assert (found.longest, found.widest) == (2500, 512)

    def short(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if k.shape[-2] > 300:
            raise ValueError("no more than 300 tokens")
        return (q @ k.mT).softmax(-1) @ v

    assert examine(wrap(short)).raised == {"repeatable": "raised ValueError on 520 tokens"}


def test_a_callable_is_taken_for_what_it_does() -> None:
    assert wrap(causal_alone).causality is Causality.ALWAYS
    assert wrap(causal_by_order).causality is Causality.ALWAYS
    assert not wrap(squashed).linear_in_values
    assert wrap(lambda q, k, v: v.mean(-2, keepdim=True).expand_as(v)).causality is Causality.NEVER
    assert wrap(lambda q, k, v, is_causal=False: causal_alone(q, k, v)).causality is Causality.ALWAYS


def test_sizes_are_found_by_trying() -> None:
    found = wrap(Projected(24))
    assert (found.fixed_width, found.fixed_features, found.fixed_heads) == (24, 24, None)
    with pytest.raises(UsageError, match=r"Projected takes width 24, not 5 and features 24, not 7 \(Runtime"):
        found(*torch.ones(3, 1, 1, 2, 5)[:2], torch.ones(1, 1, 2, 7))
    assert wrap(causal_alone).fixed_width is None
    assert mechanism_from(Projected(36), width=36).fixed_width == 36
    with pytest.raises(UsageError, match="calling Projected with width 5 failed: it raised RuntimeError"):
        mechanism_from(Projected(36), width=5)


def test_order_is_looked_at_where_it_counts() -> None:
    """A window of 64 tokens minds the order of 200, and not that of 50."""

    def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        far = (torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])).abs() >= 64
        return (q @ k.mT).masked_fill(far, -torch.inf).softmax(-1) @ v

    plain = wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v)
    assert plain.order_free(200, 4)
    assert plain.free_of_coordinates(200, 4)
    assert [wrap(window).order_free(length, 4) for length in (50, 200)] == [True, False]
    assert not wrap(lambda q, k, v: (q[..., :1] @ k[..., :1].mT).softmax(-1) @ v).free_of_coordinates(50, 4)
    assert not plain.permutation_equivariant


@pytest.mark.parametrize(
    ("attribute", "value", "why"),
    [
        ("causality", "sometimes", "is not either, always or never"),
        ("length_free", "no", "is not bool"),
        ("fixed_width", 0, "is not int"),
        ("fixed_width", True, "is not int"),
    ],
)
def test_what_is_said_wrongly_is_refused_in_one_line(attribute: str, value: object, why: str) -> None:
    def mine(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return v

    setattr(mine, attribute, value)
    with pytest.raises(UsageError, match=rf"mine\.{attribute} = .* {why}"):
        wrap(mine)


def test_looking_at_a_callable_draws_nothing() -> None:
    """The probe leaves the caller's random numbers alone, and a module's weights."""
    before, module = torch.get_rng_state(), Projected()
    wrap(lambda q, k, v: nn.functional.dropout(v, 0.5))
    wrap(module)
    assert torch.equal(torch.get_rng_state(), before)
    assert module.training
