"""Measured cost: time, memory and operations against literal counts, and against a clock that the test advances."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensor

from separatrix.analysis.costs.cost import (
    bench,
    count_operations,
    decoding_state,
    find_disagreement,
    measure,
    peak_bytes,
)
from separatrix.analysis.costs.curves import Bench, CostCurve, Disagreement, compare_with_softmax
from separatrix.analysis.laws.costs import cost_law
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Linear, Power, Softmax, mechanism_named
from separatrix.mechanisms.decoding import CACHE, STATE
from separatrix.mechanisms.recurrent.causal_linear import CausalLinear

SHORT = (64, 128, 256)


def test_peak_memory_counts_what_is_held_at_once() -> None:
    x = torch.zeros(1000, dtype=torch.float64)
    assert peak_bytes(lambda: x + 1) == 8000
    assert peak_bytes(lambda: (x + 1) + 1) == 16000
    assert peak_bytes(lambda: [x + i for i in range(3)]) == 24000
    assert peak_bytes(lambda: x.view(10, 100)) == 0


def test_memory_grows_as_it_must() -> None:
    linear, power = (measure(each, (512, 1024, 2048), 16) for each in (Linear(), Power(beta=2)))
    found = [law.exponent for each in (linear, power) if (law := cost_law(each, "peak_bytes"))]
    assert found == [pytest.approx(1, abs=0.05), pytest.approx(2, abs=0.1)]


def test_operations_are_counted_for_fused_attention_too() -> None:
    cost = measure(Softmax(), (256,), 64).costs[0]
    assert cost.flops == 2 * 2 * 256 * 256 * 64


def test_crossover_is_where_it_stays_faster() -> None:
    def curve(*seconds: float) -> CostCurve:
        zeros = (0,) * len(seconds)
        return CostCurve("x", 8, (1, 2, 4, 8), seconds, zeros, zeros, zeros, CACHE)

    slow = curve(2, 2, 2, 2)
    assert curve(3, 1, 3, 1).crossover(slow) == 8
    assert curve(3, 3, 1, 1).crossover(slow) == 4
    assert curve(1, 1, 1, 3).crossover(slow) is None
    assert curve(1, 1, 1, 1).crossover(slow) == 1
    assert curve(1, 1, 2, 1).crossover(slow) == 8, "as fast is not faster"
    assert slow.crossover(slow) is None


def test_what_is_wrong_gets_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.analysis.costs.cost.LENGTHS", SHORT)

    class Off(Softmax):
        name = "off"

        def __call__(self, q, k, v, counts=None, causal=False):  # type: ignore[no-untyped-def]
            return super().__call__(q, k, v, counts, causal) * 1.001

    (found,) = bench([Off()]).costs
    assert isinstance(found, Disagreement)
    assert "off by 0.001" in found.disagreement


def test_what_is_wrong_at_the_edges_of_runs_gets_no_numbers() -> None:
    class Forgets(CausalLinear):
        name = "forgets"

        def advance(self, state, q, k, v):  # type: ignore[no-untyped-def]
            after, out = super().advance(state, q, k, v)
            return tuple(0.9 * part for part in after), out

    assert "off by" in (find_disagreement(Forgets()) or "")
    assert find_disagreement(CausalLinear()) is None


def test_what_is_carried_from_token_to_token() -> None:
    """A recurrent state and sums of features do not grow; others would have to keep all k and v."""
    recurrent, window, full, sums, placed = (
        measure(mechanism_named(name), SHORT, 8)
        for name in ("retention", "window-linear", "softmax", "elu", "cosformer")
    )
    assert sums.state_is == STATE
    assert {cost.state_bytes for cost in sums.costs} == {8 * (8 + 1) * 4}
    assert placed.state_is == CACHE
    assert recurrent.state_is == window.state_is == STATE
    assert {cost.state_bytes for cost in recurrent.costs} == {8 * 8 * 4}
    assert window.costs[-1].state_bytes <= window.costs[-1].length * 8 * 8 * 4
    assert full.state_is == CACHE
    assert [cost.state_bytes for cost in full.costs] == [n * (8 + 8) * 4 for n in SHORT]


def test_bench_compares_with_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.analysis.costs.cost.LENGTHS", SHORT)
    found = bench([Softmax()])
    (shown,) = found.as_json()
    assert shown["faster_than_softmax_from"] is None
    assert shown["state_is"] == CACHE
    assert len(shown["state_bytes"]) == len(shown["lengths"])


def test_memory_that_is_freed_is_used_again_and_inputs_are_not_counted() -> None:
    x = torch.zeros(1000, dtype=torch.float64)

    def one_after_another() -> None:
        for _ in range(3):
            x.exp()

    assert peak_bytes(one_after_another) == 8000
    assert peak_bytes(lambda: x.add_(1)) == 0
    assert peak_bytes(lambda: x.exp().add_(1)) == 8000


def test_softmax_is_measured_once_and_every_other_mechanism_by_itself() -> None:
    found = bench("softmax,linear", lengths=[64])
    softmax, linear = found.curves
    assert isinstance(found.softmax, CostCurve)
    assert [curve.mechanism for curve in found.curves] == ["softmax", "linear"]
    assert softmax.costs == found.softmax.costs
    assert softmax.flops == (4 * 64**3,)
    assert linear.state_bytes == (64 * 65 * 4,)


def test_default_lengths_double_up_to_8192_at_the_width_of_a_usual_head() -> None:
    found = measure(mechanism_named("linear"))
    assert found.width == 64
    assert found.lengths == tuple(2**exponent for exponent in range(8, 14))
    assert measure(mechanism_named("linear"), [10]).lengths == (10,)


@pytest.mark.parametrize("lengths", [[], [0], [5, -1]])
def test_lengths_that_cannot_be_measured_are_refused(lengths: list[int]) -> None:
    with pytest.raises(UsageError, match="has no lengths to measure; give numbers of tokens"):
        bench("linear", lengths=lengths)
    assert bench("linear", lengths=[1]).curves[0].lengths == (1,)


class Timed(Softmax):
    """Softmax whose calls take as many seconds of a clock as the test says."""

    name = "timed"
    seconds: ClassVar[dict[int, list[float]]] = {}
    calls: ClassVar[Counter[int]] = Counter()
    now = 0.0

    def __call__(self, q: Tensor, *more: Any, **named: Any) -> Tensor:
        tokens = q.shape[-2]
        if tokens in self.seconds:
            type(self).now += self.seconds[tokens][self.calls[tokens] % len(self.seconds[tokens])]
            self.calls[tokens] += 1
        return super().__call__(q, *more, **named)


def test_times_are_medians_and_long_runs_are_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the calls at a length the first counts operations, the next ones are timed, the last counts memory."""
    monkeypatch.setattr(Timed, "calls", Counter())
    monkeypatch.setattr(Timed, "now", 0.0)
    monkeypatch.setattr(Timed, "seconds", {4: [99, 0.5, 0.25, 9, 99], 5: [99, 1, 1, 1, 99], 6: [99, 2, 99], 7: [0]})
    monkeypatch.setattr("separatrix.analysis.costs.cost.time.perf_counter", lambda: Timed.now)
    found = measure(Timed(), (4, 5, 6, 7))
    assert found.lengths == (4, 5, 6), "a run of more than a second is the last"
    assert found.seconds == (0.5, 1, 2)
    assert Timed.calls == {4: 5, 5: 5, 6: 3}


class Differing(Softmax):
    """Softmax off by a share of its largest output."""

    name = "differing"
    share = 0.0

    def __call__(self, *tokens: Any, **named: Any) -> Tensor:
        right = super().__call__(*tokens, **named)
        return right + self.share * right.abs().max()


def test_a_difference_is_reported_where_float64_cannot_explain_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for share, is_reported in ((0.0, False), (5e-10, False), (2e-9, True), (0.1, True)):
        monkeypatch.setattr(Differing, "share", share)
        assert (find_disagreement(Differing()) is not None) is is_reported, share
    monkeypatch.setattr(Differing, "share", float("nan"))
    assert find_disagreement(Differing()) == "it returns numbers that are not finite"


def test_long_inputs_are_counted_by_their_shapes() -> None:
    computed: dict[int, bool] = {}

    class Watched(Linear):
        name = "watched"

        def __call__(self, q: Tensor, *more: Any, **named: Any) -> Tensor:
            computed[q.shape[-2]] = not isinstance(q, FakeTensor)
            return super().__call__(q, *more, **named)

    counted = count_operations(Watched(), (2048, 4096, 8192), 4)
    assert computed == {2048: True, 4096: True, 8192: False}
    assert counted[8192] == 2 * counted[4096] == 4 * counted[2048] > 0


def test_only_what_was_timed_is_compared_with_softmax() -> None:
    def curve(*seconds: float) -> CostCurve:
        return CostCurve("x", 8, (1, 2), seconds, (0, 0), (0, 0), (0, 0), CACHE)

    wrong = Disagreement("mine", "it is off")
    compared = compare_with_softmax(curve(3, 1), curve(2, 2))
    assert compared.faster_than_softmax_from == 2
    assert compare_with_softmax(curve(3, 1), wrong).faster_than_softmax_from is None
    assert compare_with_softmax(wrong, curve(2, 2)) is wrong


def test_the_summary_names_what_was_timed_and_counts_the_others() -> None:
    curve = measure(Linear(), (64, 128), 8)
    wrong = Disagreement("mine", "it is off")
    assert repr(Bench((curve,), curve)) == "<Bench: cost up to n = 128 of linear>"
    assert Bench((curve,), curve).summary == "cost up to n = 128 of linear"
    assert Bench((curve, wrong, wrong), curve).summary == "cost up to n = 128 of linear; 2 not timed"
    assert Bench((wrong,), wrong).summary == "cost up to n = 0 of ; 1 not timed"
    assert [row["length"] for row in Bench((wrong, curve), wrong).rows()] == [64, 128]


@pytest.mark.parametrize(
    ("fixed", "size"),
    [
        ({}, 3 * (8 + 8)),
        ({"fixed_heads": 2}, 2 * (8 + 8)),
        ({"fixed_width": 24}, 3 * (24 + 24)),
        ({"fixed_features": 5}, 3 * (8 + 5)),
        ({"fixed_heads": 2, "fixed_width": 24, "fixed_features": 5}, 2 * (24 + 5)),
    ],
    ids=str,
)
def test_sizes_that_a_mechanism_fixes_replace_those_that_are_asked(
    monkeypatch: pytest.MonkeyPatch, fixed: dict[str, int], size: int
) -> None:
    """Bytes of a cache of 10 tokens, at 3 heads of width 8 unless the mechanism has other sizes."""
    for name, value in fixed.items():
        monkeypatch.setattr(Softmax, name, value)
    assert decoding_state(Softmax(), 10, 3, 8, torch.float32).bytes == 10 * 4 * size
