"""The claims on theory 6 and 7: every one holds, and every check can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from expectations import assert_fails, assert_plain_json, by_tier
from separatrix.claims import CLAIMS, ClaimStatus, blind_spots, logit_scale, retrieval, rough, separations
from separatrix.constructions import CONSTRUCTIONS
from separatrix.constructions.duplication import Duplication
from separatrix.mechanisms import Linear, Power, Softmax, mechanism_named
from separatrix.mechanisms.features.elu import Elu
from separatrix.mechanisms.features.identity import IdentityFeatures
from separatrix.mechanisms.kernels.logn_softmax import LogNSoftmax
from separatrix.mechanisms.recurrent.delta import Delta

BY_NAME = {claim.name: claim for claim in CLAIMS if claim.section in ("6", "7")}
NEEDS_A_CONDITION = {"dispersion-repaired", "sparse-averaging", "majority", "rough"}
UNNORMALISED = mechanism_named("identity-features:normalised=no")
RATIO, CALL = Softmax.ratio, Softmax.__call__
Patch = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("name", BY_NAME)
def test_claim_does_not_fail(name: str) -> None:
    finding = BY_NAME[name].check()
    expected = ClaimStatus.ONLY_WHERE if name in NEEDS_A_CONDITION else ClaimStatus.HOLDS
    assert finding.status is expected, finding.summary
    assert finding.points
    assert any(character.isdigit() for character in finding.slack)
    assert "\n" not in finding.summary
    assert bool(finding.where) == (name in NEEDS_A_CONDITION)
    assert "nan" not in finding.summary + finding.slack
    assert_plain_json(BY_NAME[name], finding)


def test_other_papers_results_are_not_claimed_as_ours() -> None:
    for claim in BY_NAME.values():
        assert claim.provenance != "paper"
        if "arXiv" in claim.statement:
            assert claim.provenance == "rec"


def test_every_construction_has_a_claim() -> None:
    """Each one beyond the paper's three is won by somebody, and rough has a claim of its own."""
    new_names = CONSTRUCTIONS.keys() - {"spike", "plain", "cross"}
    claimed_names = {*separations.SOFTMAX_WINS, *separations.LINEAR_WINS, "rough"}
    assert new_names <= claimed_names


@pytest.mark.parametrize("n", [10, 10**18])
def test_copies_are_added_up_and_not_only_divided_out(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's rows are proportions, in which copies cancel whatever is true of the sums."""
    assert blind_spots.equal_copies_point("softmax", n, 3).holds
    monkeypatch.setattr(blind_spots, "same_rows", lambda construction, mechanism: True)
    describe = Duplication.describe

    def describe_unevenly(self: Duplication, label: Any) -> Any:
        description = describe(self, label)
        return replace(description, groups=(replace(description.groups[0], count=1), *description.groups[1:]))

    monkeypatch.setattr(Duplication, "describe", describe_unevenly)
    assert not blind_spots.equal_copies_point("softmax", n, 3).holds


def swap(owner: Any, name: str, wrong: object) -> Patch:
    return lambda patch: patch.setattr(owner, name, wrong)


def of(mechanism: Any, name: str) -> Any:
    """A method that does what another mechanism does, whatever it is attached to."""
    return lambda self, *args, **kwargs: getattr(mechanism, name)(*args, **kwargs)


def looking_back(self: Delta, q: Any, k: Any, v: Any, counts: Any = None, causal: bool = False) -> Any:
    return Softmax()(q, k, v, causal=True)


def softmax_too_sharp(patch: pytest.MonkeyPatch) -> None:
    """Every logit doubled, for the engine that counts and for the one that attends: they check each other."""
    patch.setattr(Softmax, "ratio", lambda self, base, step: RATIO(self, base, step + step))
    patch.setattr(Softmax, "__call__", lambda self, q, *args, **kwargs: CALL(self, 2 * q, *args, **kwargs))


SOFTMAX_IS_LINEAR = swap(Softmax, "ratio", Linear.ratio)
LINEAR_IS_SOFTMAX = swap(Linear, "ratio", of(Softmax(), "ratio"))
ALWAYS_DIVIDED = swap(IdentityFeatures, "normalised", property(lambda self: True))

BREAKS: dict[str, Patch] = {
    "injectivity": LINEAR_IS_SOFTMAX,
    "injectivity-softmax": SOFTMAX_IS_LINEAR,
    "duplication-normalised": swap(Linear, "__call__", of(UNNORMALISED, "__call__")),
    "duplication-unnormalised": ALWAYS_DIVIDED,
    "routing-degree": swap(Power, "__call__", of(Softmax(), "__call__")),
    "parity-degree": swap(Power, "ratio", of(Softmax(), "ratio")),
    "parity-softmax": SOFTMAX_IS_LINEAR,
    "feature-rank": swap(Elu, "definition", of(Softmax(), "definition")),
    "dispersion": softmax_too_sharp,
    "dispersion-blind": SOFTMAX_IS_LINEAR,
    "dispersion-repaired": swap(LogNSoftmax, "__call__", of(Softmax(), "__call__")),
    "critical-scaling": softmax_too_sharp,
    "sparse-averaging": SOFTMAX_IS_LINEAR,
    "single-location": LINEAR_IS_SOFTMAX,
    "gradient-step": ALWAYS_DIVIDED,
    "averages-stay-in-the-hull": swap(Softmax, "__call__", of(UNNORMALISED, "__call__")),
    "recall-state": LINEAR_IS_SOFTMAX,
    "state-rank": swap(Delta, "__call__", looking_back),
    "majority": SOFTMAX_IS_LINEAR,
    "linear-wins": SOFTMAX_IS_LINEAR,
    "softmax-wins": LINEAR_IS_SOFTMAX,
    "which-of-k": softmax_too_sharp,
    "resolution": LINEAR_IS_SOFTMAX,
    "rough": swap(Softmax, "__call__", Linear.__call__),
}
"""For each claim something wrong that its check must notice."""


def test_every_claim_has_something_that_breaks_it() -> None:
    assert BREAKS.keys() == BY_NAME.keys()


@pytest.mark.parametrize("name", by_tier(BREAKS, slow={"rough"}))
def test_check_can_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKS[name](monkeypatch)
    assert_fails(BY_NAME[name])


def test_conditions_are_needed() -> None:
    """What lies outside a condition fails there: a condition that is not needed is not claimed."""
    assert not logit_scale.repair_point("logn-softmax", "1/2", 1000).holds
    assert not rough.rough_point({"noise": "0.05"}).holds


def test_linear_attention_wins_on_three_constructions_or_more() -> None:
    assert len(separations.LINEAR_WINS) >= 3
    assert all(
        separations.pair_point(name, winner, "softmax").holds for name, winner in separations.LINEAR_WINS.items()
    )


def test_a_win_must_not_be_by_tier() -> None:
    """Scalable softmax beats linear attention on the spike as far as draws can tell: that is no proof."""
    point = separations.pair_point("spike", "logn-softmax", "linear")
    assert point.measured["engines"] == "grouped, certified"
    assert not point.holds


def test_rank_is_that_of_the_matrix() -> None:
    assert blind_spots.rank(torch.eye(5, dtype=torch.float64)) == 5
    assert blind_spots.rank(torch.ones(5, 5, dtype=torch.float64)) == 1
    assert blind_spots.distance_to_permutation(torch.eye(4, dtype=torch.float64).roll(1, 0)) == 0
    assert blind_spots.distance_to_permutation(torch.zeros(4, 4, dtype=torch.float64)) == 2


def test_a_state_is_read_after_all_tokens() -> None:
    assert retrieval.answer_matrix("causal-linear", 6, 2).shape == (6, 6)
    assert blind_spots.rank(retrieval.answer_matrix("causal-linear", 6, 2)) == 2
