"""Each construction beyond the paper's: its tokens, its closed form, and who can and who cannot."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from scipy.special import ive

from separatrix.constructions import CONSTRUCTIONS, Construction, ExactConstruction, construction_named
from separatrix.core.parameters import UsageError
from separatrix.exact.engines import EngineRefusal, Sampling, certified, solve
from separatrix.exact.outputs.kernels import same_rows
from separatrix.exact.verdicts import DELTA, Verdict, verdict
from separatrix.mechanisms import mechanism_named

UNNORMALISED = "identity-features:normalised=no"
WORDS: dict[str, dict[str, str]] = {
    "injectivity": {
        "softmax": "distinguishes",
        **dict.fromkeys(("linear", "relu-features", "identity-features", "power:beta=4"), "blind"),
        UNNORMALISED: "saturated",
    },
    "duplication": {
        UNNORMALISED: "distinguishes",
        **dict.fromkeys(("softmax", "linear", "power:beta=4", "taylor:order=2", "topk", "logn-softmax"), "blind"),
    },
    "routing": {
        **dict.fromkeys(("softmax", "logn-softmax", "topk:k=1", "sparsemax"), "distinguishes"),
        **dict.fromkeys(("linear", "power:beta=3", "taylor:order=3", "based"), "blind"),
        UNNORMALISED: "saturated",
    },
    "parity": {
        **dict.fromkeys(("softmax", "logn-softmax", "topk:k=1"), "distinguishes"),
        **dict.fromkeys(("linear", "power:beta=5", "taylor:order=5", "based"), "blind"),
        UNNORMALISED: "saturated",
    },
    "dispersion": {
        **dict.fromkeys(("logn-softmax", "topk:k=1", "sparsemax", UNNORMALISED), "distinguishes"),
        **dict.fromkeys(("softmax", "linear", "relu-features"), "blind"),
    },
    "critical": {
        **dict.fromkeys(("softmax", "logn-softmax", "topk:k=1"), "distinguishes"),
        **dict.fromkeys(("linear", "taylor:order=2"), "blind"),
    },
    "averaging": {
        **dict.fromkeys(("softmax", "logn-softmax", "topk"), "distinguishes"),
        "linear": "blind",
        UNNORMALISED: "saturated",
    },
    "location": {
        **dict.fromkeys(("softmax", "logn-softmax", "topk:k=1"), "distinguishes"),
        "linear": "blind",
        UNNORMALISED: "saturated",
    },
    "regression": {
        UNNORMALISED: "distinguishes",
        **dict.fromkeys(("softmax", "linear", "power:beta=4", "topk", "logn-softmax", "sparsemax"), "blind"),
    },
    "recall": {
        **dict.fromkeys(("softmax", "logn-softmax", "topk"), "distinguishes"),
        **dict.fromkeys(("linear", "elu", UNNORMALISED), "saturated"),
    },
    "majority": {
        **dict.fromkeys(("linear", "identity-features", "elu", "taylor:order=2"), "distinguishes"),
        **dict.fromkeys(("softmax", "logn-softmax", "topk:k=1"), "blind"),
        UNNORMALISED: "saturated",
    },
    "spikes": {
        **dict.fromkeys(("softmax", "logn-softmax", "topk:k=1", UNNORMALISED), "distinguishes"),
        "linear": "blind",
    },
    "level": {
        **dict.fromkeys(("softmax", "logn-softmax", "topk:k=1"), "distinguishes"),
        "linear": "blind",
        UNNORMALISED: "saturated",
    },
}
"""At the example point: who tells the labels apart and who does not."""


def at(name: str, **changes: object) -> Construction:
    """The example point, with changes."""
    kind = construction_named(name)
    return kind.read({**kind.example, **changes})


def word(name: str, mechanism_name: str, **changes: object) -> str:
    """The verdict in one word, from enough draws where it has to be drawn."""
    point, mechanism = at(name, **changes), mechanism_named(mechanism_name)
    return Verdict(point, mechanism, solve(point, mechanism, sampling=Sampling(draws=600)), DELTA).word


def margin(name: str, mechanism_name: str, **changes: object) -> float:
    return solve(at(name, **changes), mechanism_named(mechanism_name)).margin


@pytest.mark.parametrize(
    ("name", "mechanism_name", "expected"),
    [(name, mechanism_name, expected) for name, row in WORDS.items() for mechanism_name, expected in row.items()],
)
def test_who_can_and_who_cannot_at_the_example(name: str, mechanism_name: str, expected: str) -> None:
    assert word(name, mechanism_name) == expected


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_the_example_is_a_point_that_needs_few_words(name: str) -> None:
    point = at(name)
    assert point.n == point.parameters.n
    assert point.m == 12
    if isinstance(point, ExactConstruction):
        assert set(point.example) == {"n", "m"}


@pytest.mark.parametrize("mechanism_name", ["softmax", "linear", "sparsemax", "elu", UNNORMALISED])
@pytest.mark.parametrize("name", list(WORDS))
@pytest.mark.parametrize("label", [0, 1])
def test_groups_and_literal_tokens_give_the_same(name: str, mechanism_name: str, label: int) -> None:
    changes: dict[str, dict[str, object]] = {"routing": {}, "location": {"n": 40, "d": 6}}
    point, mechanism = at(name, **changes.get(name, {"n": 64})), mechanism_named(mechanism_name)
    literal, groups = point.dense(label, 5, torch.float64), point.token_groups(label, torch.float64)
    assert literal.values is not None
    assert groups.values is not None
    assert groups.counts is not None
    assert groups.counts.sum() == len(literal.keys)
    literal_output = mechanism(*(x[None, None] for x in (literal.queries, literal.keys, literal.values)))
    counts = groups.counts[None, None]
    grouped_output = mechanism(*(x[None, None] for x in (groups.queries, groups.keys, groups.values)), counts)
    torch.testing.assert_close(literal_output, grouped_output, rtol=1e-9, atol=1e-12)


def test_injectivity_is_exact_for_every_homogeneous_score() -> None:
    for mechanism_name in ("linear", "power:beta=3", "power:beta=1"):
        for factor in ("2", "1/7", "100"):
            assert same_rows(at("injectivity", factor=factor), mechanism_named(mechanism_name))
    assert margin("injectivity", "relu-features") == pytest.approx(0, abs=1e-15)
    assert margin("injectivity", "identity-features") == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("n", [10, 1000, 10**18])
def test_injectivity_softmax_closed_form(n: int) -> None:
    weights = [1 / (1 + (n - 1) * float(n) ** -exponent) for exponent in (0.75, 1.5)]
    outcome = certified.solve(at("injectivity", n=n), mechanism_named("softmax"))
    assert [outcome.v0, outcome.v1] == pytest.approx(weights, rel=1e-12)


def test_duplication_multiplies_what_is_not_normalised_and_nothing_else() -> None:
    for r1 in (2, 3, 10):
        outcome = solve(at("duplication", r1=r1), mechanism_named(UNNORMALISED))
        assert outcome.v1 == pytest.approx(r1 * outcome.v0, rel=1e-12)
        for mechanism_name in ("softmax", "linear", "power:beta=3", "taylor:order=4"):
            assert same_rows(at("duplication", r1=r1), mechanism_named(mechanism_name))
    assert len(at("duplication", r1=3).dense(1, 0, torch.float64).keys) == 300


def test_routing_softmax_is_a_ratio_of_bessel_sums() -> None:
    """On n points the frequencies n/2, 3n/2, ... fall on n/2, and 0, n, 2n, ... on 0."""
    n, scale = 8, 15 * math.log(8)
    finest = sum(2 * ive(n // 2 + n * k, scale) for k in range(9))
    level = ive(0, scale) + sum(2 * ive(n * k, scale) for k in range(1, 9))
    assert margin("routing", "softmax") == pytest.approx(finest / level, rel=1e-10)


@pytest.mark.parametrize("n", [8, 12])
def test_routing_degree_decides(n: int) -> None:
    for degree in range(1, n // 2):
        assert abs(margin("routing", f"power:beta={degree}", n=n)) < 1e-13
        assert abs(margin("routing", f"taylor:order={degree}", n=n)) < 1e-13
    assert abs(margin("routing", f"power:beta={n // 2}", n=n)) > 1e-4


@pytest.mark.parametrize("bits", [3, 6, 9])
def test_parity_softmax_closed_form(bits: int) -> None:
    """tanh(s/2)^w with exp(s) = n: a rational."""
    n = 2**bits
    expected = Fraction(n - 1, n + 1) ** bits
    assert certified.solve(at("parity", n=n), mechanism_named("softmax")).margin == float(expected)


def test_parity_degree_decides() -> None:
    for bits in (3, 5):
        for degree in range(1, bits):
            assert same_rows(at("parity", n=2**bits), mechanism_named(f"power:beta={degree}"))
        exactly = certified.solve(at("parity", n=2**bits), mechanism_named(f"power:beta={bits}"))
        assert exactly.margin > 0
        assert not same_rows(at("parity", n=2**bits), mechanism_named(f"power:beta={bits}"))


def test_dispersion_defeats_softmax_and_is_repaired() -> None:
    assert word("dispersion", "softmax", n=10) == "distinguishes"
    for n in (1000, 10**9, 10**18):
        assert word("dispersion", "softmax", n=n) == "blind"
        weight = math.exp(3) / (math.exp(3) + n - 1)
        assert margin("dispersion", "softmax", n=n) == pytest.approx(weight, rel=1e-12)
        for mechanism_name in ("logn-softmax", "topk:k=1", "sparsemax"):
            assert word("dispersion", mechanism_name, n=n) == "distinguishes"


def test_critical_scaling_changes_at_gamma_c() -> None:
    """gamma_c = 4/3 at rho = 1/4: f tends to 0 below, to 1 above, to 1/2 at gamma_c."""
    for n in (10**6, 10**18):
        for gamma in ("1.2", "4/3", "1.5"):
            exponent = float(Fraction(gamma) * Fraction(3, 4))
            weight = 1 / (1 + (n - 1) * float(n) ** -exponent)
            assert margin("critical", "softmax", n=n, gamma=gamma) == pytest.approx(weight, rel=1e-9)
        assert word("critical", "softmax", n=n, gamma="1.2") == "blind"
        assert word("critical", "softmax", n=n, gamma="1.5") == "distinguishes"
    assert margin("critical", "softmax", n=10**18, gamma="4/3") == pytest.approx(0.5, abs=1e-12)


def test_averaging_keeps_the_mean_over_all_tokens() -> None:
    for label in (0, 1):
        tokens = at("averaging").token_groups(label, torch.float64)
        assert tokens.values is not None
        assert tokens.counts is not None
        assert (tokens.values[:, 0] * tokens.counts).sum() == 8
    assert len(at("averaging", n=16, q=8).token_groups(0, torch.float64).keys) == 2


def test_location_is_read_by_softmax_alone() -> None:
    for n in (1000, 10**6, 10**12):
        assert word("location", "softmax", n=n) == "distinguishes"
        assert word("location", "linear", n=n) == "blind"
    softmax, linear = (certified.solve(at("location"), mechanism_named(x)) for x in ("softmax", "linear"))
    assert softmax.margin == pytest.approx(1 / (1 + 999 * 1000**-2.0), rel=1e-12)
    assert linear.margin == pytest.approx(3 / (3 + 999), rel=1e-12)


@pytest.mark.parametrize("mechanism_name", ["softmax", "linear", "topk", "sparsemax", "relu-features", "logn-softmax"])
def test_regression_averages_stay_in_the_hull(mechanism_name: str) -> None:
    outcome = solve(at("regression"), mechanism_named(mechanism_name))
    assert (outcome.v0, outcome.v1) == pytest.approx((0.1, 1.0), rel=1e-12)


def test_regression_one_gradient_step_answers_exactly() -> None:
    """Linear wins: unnormalised linear attention and the delta rule answer <w,x> = width a."""
    for mechanism_name in (UNNORMALISED, "causal-linear", "delta"):
        outcome = solve(at("regression", n=40), mechanism_named(mechanism_name), sampling=Sampling(draws=600))
        assert (outcome.v0, outcome.v1) == pytest.approx((0.4, 4.0), rel=1e-9)
        assert Verdict(at("regression", n=40), mechanism_named(mechanism_name), outcome, DELTA).word == "distinguishes"


STATES = ("linear", UNNORMALISED, "causal-linear", "delta")


@pytest.mark.parametrize("mechanism_name", STATES)
def test_recall_fails_past_the_state(mechanism_name: str) -> None:
    """32 orthogonal keys fit a state of width 32; 64 keys of the same width do not."""
    assert word("recall", mechanism_name, n=32) == "distinguishes"
    assert word("recall", mechanism_name) in ("blind", "saturated", "partial")
    assert word("recall", "softmax") == "distinguishes"


def test_recall_keys_are_written_in_digits() -> None:
    tokens = at("recall").token_groups(0, torch.float64)
    scale = 4 * math.log(64)
    assert torch.equal(tokens.keys.count_nonzero(dim=1), torch.full((64,), 2))
    assert len(tokens.keys.unique(dim=0)) == 64
    shares = (tokens.queries @ tokens.keys.mT)[0] / scale
    assert sorted({round(x, 9) for x in shares.tolist()}) == [0, 0.5, 1]


def test_majority_is_won_by_averages() -> None:
    for n in (1000, 10**6, 10**12):
        assert word("majority", "linear", n=n) == "distinguishes"
        assert word("majority", "softmax", n=n) == "blind"
    assert word("majority", "softmax", gap=0) == "distinguishes"


def test_majority_noise_is_exact() -> None:
    """Linear with much noise: P(mean of 8 signs > 1/2 over the noise), by counting."""
    outcome = certified.solve(at("majority", noise=1, n=8001, gap=0), mechanism_named("linear"))
    least_mean = Fraction(1, 2) * Fraction(8001, 8000)
    ups = sum(math.comb(8, k) for k in range(9) if Fraction(2 * k - 8, 8) > least_mean)
    assert outcome.p0 == Fraction(ups, 2**8)


@pytest.mark.parametrize("k", [2, 5])
def test_spikes_name_the_class(k: int) -> None:
    """Of all k queries exactly the one of the spike's column passes tau, read off literal tokens."""
    point = at("spikes", k=k, n=30)
    tokens = point.dense(0, 3, torch.float64)
    assert tokens.values is not None
    weights = (torch.eye(k, dtype=torch.float64) @ tokens.keys.mT).softmax(-1) @ tokens.values
    assert (weights[:, 0] > point.threshold).nonzero().flatten().tolist() == [0]
    assert len(tokens.queries) == k - 1
    assert solve(point, mechanism_named("softmax")).only == Fraction(1, 2)


def test_spikes_with_a_loud_wrong_class_are_not_named() -> None:
    assert word("spikes", "softmax", a0="1.9") == "saturated"


@pytest.mark.parametrize(
    ("mechanism_name", "slope"), [("softmax", lambda n: 1 / (1 + (n - 1) * n**-2.0)), ("linear", lambda n: 3 / (n + 2))]
)
def test_level_resolution_is_the_weight(mechanism_name: str, slope: Callable[[int], float]) -> None:
    for levels in (2, 5, 100):
        for n in (100, 10**6):
            resolution = margin("level", mechanism_name, n=n, levels=levels, at=levels // 2 - 1)
            assert resolution * (levels - 1) == pytest.approx(slope(n), rel=1e-9)


def test_level_thresholds_lie_half_way() -> None:
    assert at("level", levels=3, at=1, a1=2).threshold == 1.5
    assert at("level", tau="0.3").threshold == 0.3


def test_rough_without_roughness_is_the_spike() -> None:
    values = {**construction_named("spike").example, "n": 30, "d": 7}
    for form in ("ones", "identity"):
        smooth, rough = (construction_named(x).read({**values, "form": form}) for x in ("spike", "rough"))
        for label in (0, 1):
            smooth_values, rough_values = (x.dense(label, 11, torch.float64).values for x in (smooth, rough))
            assert smooth_values is not None
            assert rough_values is not None
            torch.testing.assert_close(smooth_values, rough_values, rtol=1e-15, atol=0)


def test_rough_breaks_what_it_says() -> None:
    d0, d1 = (at("rough", noise=0).dense(label, 5, torch.float64).values for label in (0, 1))
    assert d0 is not None
    assert d1 is not None
    assert (d0 != d1).sum() == 3
    sizes = (d0[:, 1:-1] != 0).sum(0)
    assert sizes.sum() == 1003
    assert sizes.max() - sizes.min() == 1
    noisy = [at("rough", seed=seed).dense(0, 5, torch.float64).values for seed in (0, 0, 1)]
    assert torch.equal(noisy[0], noisy[1])
    assert not torch.equal(noisy[0], noisy[2])
    spread = (noisy[0] - d0) / at("rough").unit
    assert spread.std().item() == pytest.approx(0.02, rel=0.02)


def test_rough_has_only_literal_tokens() -> None:
    for engine in ("certified", "closed", "grouped"):
        with pytest.raises(EngineRefusal):
            solve(at("rough"), mechanism_named("softmax"), engine)


def test_rough_softmax_survives_ragged_blocks() -> None:
    ragged = at("rough", n=203, d=22, spikes=1, noise=0)
    outcome = solve(ragged, mechanism_named("softmax"), sampling=Sampling(draws=100))
    regular = solve(construction_named("spike").read(_spike(n=200, d=22)), mechanism_named("softmax"))
    assert outcome.engine == "dense"
    assert outcome.interval[0] <= regular.distinguish <= outcome.interval[1]


def _spike(**changes: object) -> dict[str, object]:
    return {**construction_named("spike").example, **changes}


@pytest.mark.parametrize(
    ("name", "values", "complaint"),
    [
        ("duplication", {"r1": 0}, "r1=0 is out of range; r1 must be 1 to 1e6"),
        ("routing", {"n": 9}, "n=9 is odd; try n=10"),
        ("parity", {"n": 100}, "n=100 is no power of two; try n=64"),
        ("critical", {"rho": 2}, "rho=2 is out of range; rho must be 0 to 1"),
        ("averaging", {"n": 10}, "n=10 is too small for q=8; n must be 2q=16 or more"),
        ("regression", {"n": 10}, "n=10 is not a multiple of width=4; try n=12"),
        ("recall", {"digits": 1}, "width=32 with digits=1 has room for 32 keys, not n=64; raise width or digits"),
        ("recall", {"digits": 3}, "width=32 does not divide into digits=3 equal parts"),
        ("recall", {"width": 8, "n": 300}, "width=8 has no room for n=300 keys of any number of digits"),
        ("majority", {"groups": 12}, "groups=12 is out of range; groups must be 1 to 11"),
        ("level", {"at": 4}, "at=4 has no level above it; at must be 0 to 3"),
        ("spikes", {"a0": 3}, "a0=3 must be smaller than a1=2"),
        ("rough", {"spikes": 2000}, "spikes=2000 do not fit into n=1003 tokens"),
        ("dispersion", {"n": 1}, "n=1 is out of range; n must be 2 to 1e300"),
        ("injectivity", {"gapp": 1}, "injectivity has no parameter gapp (did you mean gap?)"),
    ],
)
def test_wrong_parameters_get_one_clear_line(name: str, values: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError) as error:
        at(name, **values)
    assert str(error.value).startswith(complaint)


def test_constraints_hold_for_whole_grids() -> None:
    from separatrix.core.parameters import Grid

    for name in WORDS:
        kind = construction_named(name)
        constants = dict(kind.example)
        n = int(str(constants.pop("n")))
        columns = Grid(constants, ({"tau": ["0.3", "0.4"]}, {"n": [n, 2 * n]})).columns(kind.schema)
        assert columns["n"].shape == (1, 2)


def test_three_constructions_are_won_by_linear_attention() -> None:
    """Each with a witness: the mechanism that tells the labels apart where softmax is blind."""
    for name, winner in (("duplication", UNNORMALISED), ("regression", UNNORMALISED), ("majority", "linear")):
        example = CONSTRUCTIONS[name].example
        assert verdict(name, winner, **example).word == "distinguishes"
        assert verdict(name, "softmax", **example).word == "blind"


def test_descriptions_say_what_is_in_units_of_log_n() -> None:
    """Injectivity's keys are, not its query: literal tokens have it so."""
    construction = construction_named("injectivity").read({"n": 100, "m": 12, "gap": 3, "query": "1/2", "factor": 5})
    quiet, loud = (construction.dense(label, 0, torch.float64) for label in (0, 1))
    assert (quiet.queries.tolist(), loud.queries.tolist()) == ([[0.5]], [[2.5]])
    assert quiet.keys[:2, 0].tolist() == pytest.approx([4 * math.log(100), math.log(100)])
    assert "keys are in units of log n" in construction.description


def test_it_is_these_keys_that_recall_fails_on() -> None:
    """One more pair than `width`, with a key that overlaps another's and not the asked one's: it is heard."""
    keys = torch.cat([torch.eye(8), torch.eye(8)[1:2]]).double()[None, None]
    values = torch.tensor([0.0, *[1.0] * 8]).double()[None, None, :, None]
    attends = mechanism_named("identity-features:normalised=no")
    assert attends(keys[..., :1, :], keys, values).item() == 0
    overlapping = at("recall", n=9, width=8)
    tokens = overlapping.token_groups(0, torch.float64)
    q, k, v = (rows[None, None] for rows in (tokens.queries, tokens.keys, tokens.values))
    assert attends(q, k, v, tokens.counts[None, None]).item() > 0
