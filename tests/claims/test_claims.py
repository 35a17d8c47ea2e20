"""The ledger: every claim holds, and every check can fail."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from rich.console import Console

from expectations import assert_fails, assert_plain_json, by_tier
from separatrix.claims import (
    CLAIMS,
    Claim,
    ClaimStatus,
    Entry,
    Finding,
    Ledger,
    Point,
    _literal,
    _tools,
    arithmetic,
    boundary,
    check_claim,
    ledger,
    margins,
    proof,
    signs,
    spike,
    theorem,
    units,
)
from separatrix.claims import readers as reader_claims
from separatrix.claims import weights as weight_claims
from separatrix.claims._base import Points, Provenance
from separatrix.claims._evidence import COMPUTED
from separatrix.cli.claim import print_ledger
from separatrix.constructions._blocks import BlockConstruction
from separatrix.constructions.spike import Spike
from separatrix.constructions.theorem import sufficient_n
from separatrix.exact.engines import certified
from separatrix.exact.outputs.growth_laws import GrowthLaw, distance_laws, margin_law
from separatrix.exact.reader import FourLayerNetwork
from separatrix.exact.verdicts import Verdict, lost_from
from separatrix.exact.verdicts.best_reader import ReaderLimit
from separatrix.exact.weights import bounds, read_linear
from separatrix.mechanisms import Linear, Power, ScoreMechanism, Softmax, Taylor

BY_NAME = {claim.name: claim for claim in CLAIMS if claim.section in "12345"}
"""Of the paper and around it; the rest is in test_separation_claims."""
NEEDS_A_CONDITION = {"identity-separates", "critical-degree", "plain-linear-reach"}
Patch = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("name", BY_NAME)
def test_claim_does_not_fail(name: str) -> None:
    finding = BY_NAME[name].check()
    expected = ClaimStatus.ONLY_WHERE if name in NEEDS_A_CONDITION else ClaimStatus.HOLDS
    assert finding.status is expected, finding.summary
    assert finding.points
    assert finding.summary
    assert finding.slack
    assert "\n" not in finding.summary
    assert bool(finding.where) == (name in NEEDS_A_CONDITION)
    assert "nan" not in finding.summary + finding.slack
    assert_plain_json(BY_NAME[name], finding)


def test_names_are_unique_and_provenance_is_known() -> None:
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.provenance for claim in CLAIMS} == set(get_args(Provenance))
    assert [claim.section for claim in CLAIMS] == sorted(claim.section for claim in CLAIMS)
    assert {claim.section for claim in CLAIMS} == set("1234567")


def test_what_the_paper_states_is_told_from_what_was_reconstructed() -> None:
    """Only what the summary states may carry [paper]: the units, the network, tau and m."""
    paper_claims = {claim.name for claim in CLAIMS if claim.provenance == "paper"}
    assert paper_claims == {"tensor-trick", "softmax-unit", "linear-unit", "network-fires", "threshold", "width"}


def test_the_ledger_has_every_claim_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks themselves are run one by one above and in test_separation_claims."""
    finding, names = BY_NAME["threshold"].check(), list[str]()
    quick = tuple(replace(claim, check=lambda: finding) for claim in CLAIMS)
    monkeypatch.setattr("separatrix.claims.CLAIMS", quick)
    result = ledger(lambda claim: names.append(claim.name))
    assert names == [claim.name for claim in CLAIMS]
    assert result.holds
    assert [row["name"] for row in result.as_json()] == names


def test_a_check_that_raises_an_error_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger goes on with the other claims, and says what was raised."""

    def raise_error() -> Finding:
        raise ZeroDivisionError("a sum of\nweights is 0")

    claim, finding = BY_NAME["threshold"], BY_NAME["threshold"].check()
    monkeypatch.setattr(
        "separatrix.claims.CLAIMS", (replace(claim, check=raise_error), replace(claim, check=lambda: finding))
    )
    failing, holding = ledger().entries
    assert failing.finding.status is ClaimStatus.FAILS
    assert failing.finding.summary == "the check raised ZeroDivisionError: a sum of weights is 0"
    assert holding.finding.status is ClaimStatus.HOLDS
    assert_plain_json(claim, failing.finding)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_stops_a_check(stop: type[BaseException]) -> None:
    def interrupt() -> Finding:
        raise stop

    with pytest.raises(stop):
        check_claim(replace(BY_NAME["threshold"], check=interrupt))


def shallower(method: Callable[..., Any], factor: float) -> Callable[..., Any]:
    """A kernel whose log ratios are off by a factor."""
    return lambda self, base, step: factor * method(self, base, step)


def remove_spike(self: BlockConstruction, label: Any, row: int, dtype: Any) -> Any:
    tokens = MATRIX(self, label, row, dtype)
    tokens[row, 0] = 0
    return tokens


def always_fires(self: FourLayerNetwork, tokens: Any) -> Any:
    layers = LAYERS(self, tokens)
    return replace(layers, output=layers.output + 1)


def a_tenth_too_small(setting: dict[str, Any], delta: float, *units: Any) -> int:
    step = int(setting["d"]) - 2
    least_n = sufficient_n(setting, delta, *units)
    assert least_n is not None
    return max(9 * (least_n // step) // 10, 1) * step


MATRIX, LAYERS = BlockConstruction.matrix, FourLayerNetwork.layers
COUNT = certified.count
KRONECKER, LOGITS = units.kronecker_block, spike.closed_logits
ONES_SOFTMAX, ONES_LINEAR = spike.ones_softmax_weights, spike.ones_linear_weights
WEIGHT = boundary.cross_softmax_weight


def swap(owner: Any, name: str, wrong: object) -> Patch:
    return lambda patch: patch.setattr(owner, name, wrong)


def of_softmax(name: str) -> Any:
    """A method that does what softmax does, whatever it is attached to."""
    return lambda self, *args, **kwargs: getattr(Softmax(), name)(*args, **kwargs)


SOFTMAX_IS_LINEAR = swap(Softmax, "log_ratio", Linear.log_ratio)
SOFTMAX_TOO_FLAT = swap(Softmax, "log_ratio", shallower(Softmax.log_ratio, 0.9))
COMFORTABLE = {"a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.1"}

RANK_ONE = bounds.rank_one_bound


def tighten(law: GrowthLaw | None) -> GrowthLaw | None:
    """The law with its lower bound as the upper one."""
    return None if law is None else replace(law, bounds=(law.bounds[0], law.bounds[0]))


BREAKS: dict[str, Patch] = {
    "tensor-trick": swap(units, "kronecker_block", lambda a1, a2, x, j0: KRONECKER(a1, a2, x.T, j0)),
    "softmax-unit": swap(Softmax, "__call__", Linear.__call__),
    "linear-unit": swap(Linear, "definition", of_softmax("definition")),
    "network-fires": swap(FourLayerNetwork, "layers", always_fires),
    "threshold": swap(Spike, "threshold", property(lambda self: float(self.c) * self.unit)),
    "width": SOFTMAX_IS_LINEAR,
    "spike-shape": swap(BlockConstruction, "matrix", remove_spike),
    "closed-ones-softmax": swap(spike, "ones_softmax_weights", lambda m, label: ONES_SOFTMAX(m, label) * 1.001),
    "closed-ones-linear": swap(spike, "ones_linear_weights", lambda m, label: ONES_LINEAR(m, 0)),
    "closed-identity": swap(spike, "closed_logits", lambda m, label: LOGITS(m, label).T * 1.001),
    "linear-ignores-query": swap(Linear, "definition", of_softmax("definition")),
    "exact-probability": swap(Linear, "ratio", of_softmax("ratio")),
    "distinguish-formula": swap(signs, "formula", lambda p0, only, m: (1 - p0) ** m * (1 - (1 - only) ** m)),
    "any-n": SOFTMAX_TOO_FLAT,
    "ties": swap(arithmetic, "TIE", {**signs.TIE, "b": "0.5"}),
    "theorem": SOFTMAX_IS_LINEAR,
    "theorem-from-n": swap(theorem, "sufficient_n", a_tenth_too_small),
    "hypotheses-needed": swap(theorem, "WITHOUT", (("a1 - b > 0.1", COMFORTABLE),)),
    "boundary-ones": SOFTMAX_TOO_FLAT,
    "spike-share": SOFTMAX_TOO_FLAT,
    "boundary-identity": SOFTMAX_TOO_FLAT,
    "identity-separates": SOFTMAX_IS_LINEAR,
    "hoeffding": swap(proof, "hoeffding_bound", lambda b, d: math.exp(-(d - 2) / (100 * b * b))),
    "firing-probability": swap(Softmax, "ratio", Linear.ratio),
    "tuned-threshold": swap(margins, "C", Fraction(1, 5)),
    "margin-softmax": SOFTMAX_TOO_FLAT,
    "margin-linear": swap(Linear, "log_ratio", shallower(Linear.log_ratio, 1.01)),
    "noise": swap(Verdict, "auc", property(lambda self: 0.5 * (1 + math.erf(2 * self.outcome.margin)))),
    "number-formats": swap(margins, "lost_from", lambda c, m: {k: n and 4 * n for k, n in lost_from(c, m).items()}),
    "margin-laws": swap(_tools, "margin_law", lambda c, m: tighten(margin_law(c, m))),
    "best-reader": swap(ReaderLimit, "accuracy", property(lambda self: 0.9)),
    "one-row-and-all-rows": swap(reader_claims, "distance_laws", lambda c, m: distance_laws(c, m)[::-1]),
    "weights-exact": swap(weight_claims, "read_linear", lambda s, p: read_linear(s, replace(p, tau=p.tau * 2))),
    "weights-rank-one": swap(weight_claims, "rank_one_bound", lambda p: replace(RANK_ONE(p), bound=Fraction(1, 2))),
    "weights-with-n": swap(weight_claims, "weights_with_n", lambda p, theta: bounds.weights_with_n(p, 100 * theta)),
    "weights-with-amplitude": swap(
        weight_claims, "weights_with_amplitude", lambda p: bounds.robust_weights(p, Fraction(1, 4), Fraction(0))
    ),
    "weights-robust": swap(weight_claims, "robust_weights", lambda p, eta, b: bounds.robust_weights(p, eta, b / 100)),
    "weights-signed": swap(weight_claims, "signed_weights", lambda p, total: bounds.signed_weights(p, total + 1)),
    "weights-unnormalised": swap(weight_claims, "unnormalised_ratio", lambda p: p.row_sums[1] / p.row_sums[0]),
    "weights-scaled": swap(Softmax, "ratio", Linear.ratio),
    "critical-degree": swap(Power, "log_ratio", Linear.log_ratio),
    "taylor-order": swap(Taylor, "log_ratio", of_softmax("log_ratio")),
    "plain-softmax-peak": swap(Softmax, "__call__", Linear.__call__),
    "plain-linear-peak": swap(Linear, "__call__", of_softmax("__call__")),
    "plain-linear-reach": swap(Linear, "log_ratio", of_softmax("log_ratio")),
    "cross-weight": swap(boundary, "cross_softmax_weight", lambda n, a, r_q: WEIGHT(n + 1, a, r_q)),
    "boundary-cross": SOFTMAX_TOO_FLAT,
}
"""For each claim something wrong that its check must notice."""


def test_every_claim_has_something_that_breaks_it() -> None:
    assert BREAKS.keys() == BY_NAME.keys()


@pytest.mark.parametrize("name", by_tier(BREAKS, slow={"plain-linear-reach", "exact-probability"}))
def test_check_can_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKS[name](monkeypatch)
    assert_fails(BY_NAME[name])


@pytest.mark.parametrize("mechanism", [Softmax, Linear])
def test_margins_off_by_a_hair_are_noticed(mechanism: type[ScoreMechanism], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "log_ratio", shallower(mechanism.log_ratio, 0.999))
    assert BY_NAME[f"margin-{mechanism.name}"].check().status is ClaimStatus.FAILS


@pytest.mark.parametrize("mechanism", [Softmax, Linear])
@pytest.mark.parametrize("index", range(len(margins.MARGIN_SIZES)))
def test_a_margin_is_compared_at_every_n(
    mechanism: type[ScoreMechanism], index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those without a reference number, too."""

    def off(*args: Any, **axes: Any) -> Any:
        grid = _tools.on_grid(*args, **axes)
        return replace(grid, margin=grid.margin * (1 + 1e-6 * (np.arange(grid.margin.size) == index)))

    monkeypatch.setattr(margins, "on_grid", off)
    points = margins.margin_points(mechanism())
    assert [point.holds for point in points] == [i != index for i in range(len(points))]


@pytest.mark.parametrize("from_n", [10**6, 10**18, 10**300])
def test_more_work_at_larger_n_is_noticed(from_n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def laborious(construction: Spike, mechanism: ScoreMechanism) -> Any:
        for _ in range(construction.n >= from_n):
            COUNT(construction, mechanism)
        return COUNT(construction, mechanism)

    monkeypatch.setattr(arithmetic.certified, "count", laborious)
    finding = arithmetic.any_n.check()
    assert finding.status is ClaimStatus.FAILS
    assert all(point.holds == (float(point.parameters["n"]) < from_n) for point in finding.points)


def test_a_network_that_never_fires_makes_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = [{**setting, "tau": "50"} for setting in units.NETWORK_SETTINGS]
    monkeypatch.setattr(units, "NETWORK_SETTINGS", quiet)
    assert units.network_fires.check().status is ClaimStatus.FAILS


def test_conditions_vanish_where_they_are_not_needed() -> None:
    good, bad = Point({}, True), Point({}, False)
    texts = ("d grows", "summary", "slack")
    assert Points([good]).conclude_where([bad], *texts).status is ClaimStatus.ONLY_WHERE
    assert Points([good]).conclude_where([good], *texts) == Points([good, good]).conclude("summary", "slack")
    assert Points([bad]).conclude_where([good], *texts).status is ClaimStatus.FAILS
    assert Points([]).conclude_where([bad], *texts).status is ClaimStatus.FAILS
    assert Points([]).conclude("summary", "slack").status is ClaimStatus.FAILS


def test_crossing_is_found_or_refused() -> None:
    def step(places: list[Fraction]) -> Any:
        return np.array([float(x > Fraction(1, 3)) for x in places])

    assert 0 < _tools.crossing(step, "0", "1") - 1 / 3 < 1e-6
    assert math.isnan(_tools.crossing(step, "0.5", "1"))
    assert math.isnan(_tools.crossing(step, "0", "0.1"))


def test_limits_are_extrapolated_in_log_n() -> None:
    sizes = [10**3, 10**6, 10**9]
    assert _tools.limit_in_log(sizes, [2 - 3 / math.log(n) for n in sizes]) == pytest.approx(2)


@pytest.mark.parametrize(
    ("value", "stored"),
    [(math.nan, "nan"), (np.float64(0.5), 0.5), (True, "yes"), (np.int64(3), 3), (Fraction(1, 3), "1/3")],
)
def test_measurements_are_fit_for_json(value: object, stored: object) -> None:
    assert Point({}, True, value=value).measured["value"] == stored


def test_large_parameters_are_written_exactly() -> None:
    assert Point({"n": 3 * 10**300 + 10**299, "a": 0.1}, True).parameters == {"n": "31e299", "a": "0.1"}


def test_loops_agree_between_rationals_and_floats() -> None:
    a, b, c = Fraction(9, 10), Fraction(3, 10), Fraction(1, 5)
    exact = _literal.outputs(_literal.spike_matrix(12, 6, a, b, c, 5), "identity", lambda z: z**2)
    floats = _literal.outputs(_literal.spike_matrix(12, 6, 0.9, 0.3, 0.2, 5), "identity", lambda z: z**2)
    np.testing.assert_allclose(np.array(exact, dtype=float), floats, rtol=1e-14, atol=1e-16)


def test_sign_classes_count_all_vectors() -> None:
    classes = [_literal.sign_class(y, 1) for y in _literal.sign_vectors(6)]
    sizes = [classes.count((1, 1, 1, plus)) for plus in range(4)]
    assert sizes == [1, 3, 3, 1]
    assert len(set(classes)) == 8 * 4


def test_hypotheses_are_the_theorems() -> None:
    setting = theorem.admissible(COMFORTABLE, 0.01)
    assert all(theorem.hypotheses(setting, 0.01).values())
    for hypothesis, setting in theorem.WITHOUT:
        conditions = theorem.hypotheses(theorem.admissible(setting, 0.01), 0.01)
        assert [name for name, holds in conditions.items() if not holds] == [hypothesis]


def test_boundary_finding_rejects_a_wrong_limit() -> None:
    finding = boundary.boundary_finding(boundary.BOUNDARY_SIZES, 0.87, boundary.ones_setting)
    assert finding.status is ClaimStatus.FAILS


def entry(status: ClaimStatus) -> Entry:
    claim = Claim("a-name", "3", "ours", "A statement with [brackets].", COMPUTED, lambda: finding)
    finding = Finding(
        status, "what was found", "slack [1, 2]", (), "a condition" if status is ClaimStatus.ONLY_WHERE else ""
    )
    return Entry(claim, finding, 0.1)


def test_table_fits_eighty_columns() -> None:
    out = io.StringIO()
    result = Ledger(tuple(entry(status) for status in ClaimStatus))
    print_ledger(result, Console(file=out, width=80, force_terminal=False))
    text = out.getvalue()
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    for expected in ("[ours]", "holds", "only where", "a condition", "FAILS", "what was found", "slack [1, 2]"):
        assert expected in text
    assert "1 holds, 1 holds with a condition, 1 fails" in text


def test_table_is_coloured() -> None:
    out = io.StringIO()
    print_ledger(
        Ledger((entry(ClaimStatus.HOLDS), entry(ClaimStatus.FAILS))), Console(file=out, width=80, force_terminal=True)
    )
    assert "\x1b[32mholds" in out.getvalue()
    assert "\x1b[1;31mFAILS" in out.getvalue()


def test_the_readme_counts_the_claims_and_their_tags() -> None:
    text = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    tags = Counter(claim.provenance for claim in CLAIMS)
    counts = (
        f"Of the {len(CLAIMS)} checked statements, {tags['paper']} are stated in the summary, "
        f"{tags['rec']} are reconstructed from it or from other papers, and "
        f"{tags['ours']} are results of this project."
    )
    assert counts in text
    assert f"checks all {len(CLAIMS)}," in text
