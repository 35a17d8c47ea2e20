"""The contract: every mechanism keeps it, every special case holds, and every check can fail."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from broken_mechanisms import BROKEN, NystromOffByAThousandth, Raises, Sound
from separatrix import contract
from separatrix.contract import CHECKS, Broken, Examination, _base, examine, run, sensitivity
from separatrix.contract._base import RESTS_ON
from separatrix.contract.lattice import SPECIAL_CASES, SpecialCase, check_special_case, list_special_cases
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, examples, mechanism_named
from separatrix.mechanisms.custom import wrap
from subtly_broken_mechanisms import SUBTLE

SMALLER = (
    "softmax:temperature=1/3",
    "power:beta=1/2",
    "taylor:order=9",
    "sigmoid:bias=0",
    "identity-features:normalised=no",
    "elu:normalised=no",
    "hedgehog:softmax=yes",
    "dpfp:nu=1",
    "favor:features=7,seed=3",
    "topk:k=3",
    "entmax:alpha=1.2",
    "window:size=3",
    "window-global:size=3,globals=2",
    "strided:stride=4",
    "block-random:block=4,random=1",
    "linformer:rank=4",
    "nystrom:landmarks=2",
    "nystrom:landmarks=4",
    "causal-linear:normalised=yes",
    "retention:decay=1/2",
    "gla:gate=1/2",
    "ssd:gate=1/2",
    "delta:beta=1/2,unit_keys=no",
    "gated-delta:gate=1/2",
    "kda:gate=1/2",
    "delta:beta=2",
    "deltaproduct:factors=3,beta=2",
    "rwkv7:gate=1/2,rate=1/2,replacement=1/2",
    "mesanet:ridge=1/10,unit_keys=no",
    "log-linear:levels=3,gate=1",
    "multiscale-retention:decay=1/2,normalised=no",
    "fox:gate=1/2",
    "softmax-sink:sink=none",
    "differential:lam=0",
    "rotary:inner=delta",
    "alibi:inner=elu",
    "alibi:inner=sigmoid",
    "alibi:inner=power:beta=4",
    "alibi:inner=window:size=3",
    "path:beta=3/2",
    "block-routing:block=4,k=2",
    "window-linear:size=3",
)
"""Parameters at which windows, ranks and the like are smaller than the inputs."""

LONG = {
    *("gradient_of_long_inputs", "long_in_16_bits", "long_in_float32", "prefix", "lengths"),
    *("poisoned_memory", "double_backward", "logits_in_16_bits", "chunks", "state_size"),
}
"""The checks that take longest; `make test-all` runs them."""


SHARED = ("_base.py", "calls.py", "comparisons.py", "inputs.py", "trials.py")
"""The files of the contract that hold no checks."""


def _parts() -> list[Any]:
    """Each mechanism with the checks to run, and whether extras are drawn."""
    exhaustive, short, every = pytest.mark.exhaustive, set(CHECKS) - LONG, set(CHECKS)
    parts = []
    for mechanism in examples():
        spelling = mechanism.spelled
        parts.append(pytest.param(spelling, short, (False,), id=spelling))
        parts.append(pytest.param(spelling, LONG, (False, True), id=f"{spelling} long", marks=exhaustive))
        if mechanism.extras:
            parts.append(pytest.param(spelling, short, (True,), id=f"{spelling} drawn", marks=exhaustive))
    both = (False, True)
    return [*parts, *(pytest.param(each, every, both, id=each, marks=exhaustive) for each in SMALLER)]


IN_A_DERIVATIVE = "it magnifies rounding .* in a derivative"
EXCUSES = {
    "counts": "it does not accept counts, and refuses them",
    "counts_split": "it does not accept counts",
    "gradient_of_long_inputs": IN_A_DERIVATIVE,
    "gradient_of_one_input": IN_A_DERIVATIVE,
    "long_in_float32": "it magnifies rounding",
    "gradient_in_float32": IN_A_DERIVATIVE,
    "gradient_on_zero_keys": "its kernel has no slope at a logit of 0",
    "cross": "it is always causal, so there is one query for each key|it refuses",
    "causality": "it has no causal form",
    "causality_of_gradients": "it has no causal form",
    "prefix": "it has no causal form|it declares that causal results",
    "causal_flag": "it supports causal=True and causal=False",
    "permutation": "it does not declare that it is permutation equivariant",
    "normalised": "it does not declare that its weights add up to 1",
    "finite_signed": "its kernel is not positive at negative logits",
    "signed_tokens": "it magnifies rounding .* on tokens of both signs|its definition does not support",
    "gradient_of_extras": f"it has no inputs beside q, k and v|{IN_A_DERIVATIVE}",
    "decoding": "it has no causal form|it declares that causal results|it has no state",
    "absent_tokens": "it does not take present",
    "nobody_present": "it does not take present",
    "logits_in_16_bits": "the size of queries and keys has almost no effect on it|it magnifies rounding",
    "large_logits": "it magnifies rounding .* on large logits|its definition does not support",
    "more_keys": "its definition covers",
    "later_places": "its definition covers",
    "nothing_dropped": "its definition covers",
    "more_queries": "its definition covers",
    "more_coordinates": "its definition covers",
    "more_features": "its definition covers",
    "more_heads": "its definition covers",
    "gradient_in_bfloat16": IN_A_DERIVATIVE,
    "chunks": "it has no state",
    "state_size": "it has no state",
}
"""The checks that a mechanism of ours may leave out, and what it says then."""


@pytest.mark.parametrize(("spelling", "checks", "drawn"), _parts())
def test_every_mechanism_keeps_the_contract(
    spelling: str, checks: set[str], drawn: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {name: check for name, check in CHECKS.items() if name in checks}
    monkeypatch.setattr(_base, "CHECKS", asked)
    monkeypatch.setattr(_base, "RANDOM_EXTRAS", drawn)
    found = examine(mechanism_named(spelling))
    assert found.failed == {}
    assert len(found.passed) + len(found.skipped) == len(asked)
    for name, reason in found.skipped.items():
        assert re.match(EXCUSES[name], reason), (name, reason)


@pytest.mark.parametrize("case", SPECIAL_CASES, ids=lambda case: f"{case.special} is {case.general}")
def test_every_special_case_holds(case: SpecialCase) -> None:
    check_special_case(case)


def test_a_special_case_can_fail() -> None:
    case = SpecialCase("power:beta=2", "linear", "not so")
    with pytest.raises(Broken, match=r"power:beta=2 is not linear .* off by \d"):
        check_special_case(case)
    relu = next(case for case in SPECIAL_CASES if case.special == "relu")
    with pytest.raises(Broken, match=r"relu is not identity-features"):
        check_special_case(replace(relu, is_sum=False))


def test_special_cases_are_listed_as_rows() -> None:
    rows = list_special_cases()
    assert {"special": "power:beta=1", "general": "linear"}.items() <= rows[0].items()
    assert len(rows) == len(SPECIAL_CASES)
    assert all(set(row) == set(rows[0]) and all(row.values()) for row in rows)


class Magnifies(Sound):
    """Sound, but says that it magnifies rounding: by 1e9, and more in derivatives."""

    def sensitivity(self, q: Tensor, k: Tensor, causal: bool = False, order: int = 0) -> float:
        return 1e9 * 10.0**order


def test_what_cannot_be_told_is_left_out_and_says_why() -> None:
    found = examine(Magnifies())
    assert found.failed == {}
    reason = "it magnifies rounding 1e+09 times on 66 tokens in torch.float32"
    reason = f"{reason}: a tolerance of 8e+03 is not informative"
    for name in ("definition", "half_precision"):
        assert found.skipped[name] == reason
    for name in ("gradient", "double_backward", "forward_mode"):
        assert found.skipped[name].startswith("it magnifies rounding 1e+10 times in a derivative")
    assert {"cross", "layout", "causality", "prefix", "permutation", "normalised"} <= set(found.passed)


def test_an_error_is_found_before_what_cannot_be_told() -> None:
    class MagnifiesAndErrs(Magnifies):
        def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
            return 1.001 * self.definition(q, k, v, *more, **options)

    failed = examine(MagnifiesAndErrs()).failed
    assert re.match(r"the fast form differs .* off by 0\.0011, allowed 2e-05", failed["definition"])


@pytest.mark.parametrize("landmarks", [1, 2, 8, 32, 64])
def test_a_wrong_nystrom_is_caught_at_any_conditioning(landmarks: int) -> None:
    assert "definition" in examine(NystromOffByAThousandth(landmarks=landmarks)).failed


def test_sensitivity_is_measured_on_the_usual_tokens() -> None:
    assert sensitivity(mechanism_named("softmax")) == 1
    assert sensitivity(mechanism_named("nystrom")) > 1e5
    assert sensitivity(mechanism_named("nystrom:landmarks=1")) == pytest.approx(1)


@cache
def _examined(broken: type[Sound]) -> Examination:
    return examine(broken())


def test_what_is_sound_is_found_sound() -> None:
    found = examine(Sound())
    assert found.failed == {}
    more = {
        "more_keys",
        "more_coordinates",
        "more_features",
        "more_heads",
        "gradient_of_extras",
        "decoding",
        "absent_tokens",
        "nobody_present",
        "later_places",
        "more_queries",
        "nothing_dropped",
    }
    assert set(found.skipped) == {"causal_flag", "chunks", "state_size", *more}
    assert found.not_tried == {}
    assert found.holds


@pytest.mark.parametrize(("broken", "name"), BROKEN, ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_what_is_broken_is_named_once(broken: type[Sound], name: str) -> None:
    found = _examined(broken)
    assert set(found.failed) == {name}, found
    assert not found.holds
    assert all("\n" not in what and len(what) < 500 for what in found.failed.values())
    assert set(found.not_tried.values()) <= {name}


def test_every_long_check_exists() -> None:
    assert set(CHECKS) >= LONG


def test_a_check_comes_after_those_it_rests_on() -> None:
    places = {name: place for place, name in enumerate(CHECKS)}
    assert all(places[each] < places[name] for name, below in RESTS_ON.items() for each in below)


def test_every_check_can_fail_and_says_what_it_checks() -> None:
    assert {name for _, name in [*BROKEN, *SUBTLE]} == set(CHECKS)
    for check in CHECKS.values():
        assert check.__doc__
        assert "\n" not in check.__doc__


def test_failures_carry_numbers() -> None:
    what = {name: _examined(broken).failed[name] for broken, name in BROKEN if broken is not Raises}
    for name in ("causality", "definition", "normalised", "batch_independence", "linear_in_values"):
        assert re.search(r"off by [\d.e+-]+, allowed [\d.e+-]+, at batch \d, head \d", what[name]), what[name]
    assert re.search(r"the fast form differs .* off by 0\.001,", what["definition"])
    assert re.search(r"numbers are not finite, the first at batch 0", what["finite"])
    assert what["state_size"] == (
        "the state grew from 25680 bytes at token 100 to 265680 by token 1100; it grows at token 101"
    )


def _softmax_with_mask_offset(offset: int, least_length: int = 0) -> Any:
    """Softmax that sees `offset` tokens too many, if there are at least so many tokens."""

    def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        scores = q @ k.mT
        if causal:
            reach = offset if q.shape[-2] >= least_length else 0
            hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1 + reach)
            scores = scores.masked_fill(hidden, -torch.inf)
        return scores.softmax(-1) @ v

    return attend


@pytest.mark.parametrize(
    ("attend", "explanation"),
    [
        (_softmax_with_mask_offset(1), "token 0 sees token 1 but no later one. The mask is off by one;"),
        (_softmax_with_mask_offset(2), "token 0 sees tokens 1 to 2 but no later one. The mask is off by 2;"),
        (
            lambda q, k, v, causal=False: (q @ k.mT).softmax(-1) @ v,
            "every token sees all later ones. No causal mask is applied;",
        ),
        (
            _softmax_with_mask_offset(1, least_length=50),
            "results depend on later tokens, though not among the first 13: check the ends of blocks;",
        ),
    ],
)
def test_a_leak_is_explained(attend: Any, explanation: str) -> None:
    with pytest.raises(Broken, match=f"not causal: {re.escape(explanation)} changing . from token"):
        run("causality", wrap(attend, "mine"))


def test_a_call_passes_few_frames_of_ours() -> None:
    package = str(Path(contract.__file__).parent.parent)
    depths = []

    def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        frame, depth = sys._getframe().f_back, 0
        while frame is not None and frame.f_code.co_name not in CHECKS:
            path = frame.f_code.co_filename
            is_helper_of_check = Path(path).parent.name == "contract" and Path(path).name not in SHARED
            depth += path.startswith(package) and not is_helper_of_check
            frame = frame.f_back
        assert frame is not None
        depths.append(depth)
        scores = q @ k.mT
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -torch.inf)
        return scores.softmax(-1) @ v

    mechanism = wrap(attend, "mine")
    assert mechanism.causality is Causality.EITHER  # probed before the checks
    depths.clear()
    for name in ("batch_independence", "causality", "gradient", "linear_in_values", "more_heads"):
        run(name, mechanism)
    assert len(depths) > 200
    assert max(depths) <= 4


def test_exceptions_become_one_line() -> None:
    failed = examine(Raises()).failed
    assert failed == {"form": "raised RuntimeError: first line second line"}


def test_the_callers_random_numbers_and_switches_stay() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert isinstance(examine(Sound()), Examination)
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()
    with torch.no_grad():
        run("gradient", Sound())


def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Softmax by torch."""
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)


class Scaled(nn.Module):
    """Softmax whose temperature is a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.drop = nn.Dropout(0.5)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.drop((self.scale * q @ k.mT).softmax(-1) @ v)


def test_a_function_is_wrapped_by_its_signature() -> None:
    mine = wrap(attend, "mine")
    assert (mine.name, mine.spelled, mine.family) == ("mine", "mine", "custom")
    assert mine.causality is Causality.EITHER
    assert not mine.takes_counts
    assert not mine.permutation_equivariant
    assert mine.is_normalised
    assert examine(mine).failed == {}
    assert not wrap(lambda q, k, v: 2 * attend(q, k, v), "twice").is_normalised
    again = pickle.loads(pickle.dumps(mine))
    assert (again.name, again.causality) == ("mine", Causality.EITHER)


def test_a_module_is_examined_in_every_dtype_and_left_alone() -> None:
    module = Scaled()
    mine = wrap(module)
    assert mine.name == "Scaled"
    assert mine.causality is Causality.NEVER
    assert examine(mine).failed == {}
    assert module.training
    assert module.scale.dtype is torch.float32
    assert wrap(Scaled).name == "Scaled"


def test_a_mechanism_stays_what_it_is() -> None:
    softmax = mechanism_named("softmax")
    assert wrap(softmax) is softmax


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (3, "int is not callable"),
        (lambda q, k: q, "cannot be called as"),
        (lambda q, k, v, w: q, "cannot be called as"),
        (torch.native_layer_norm, "no signature that can be read"),
        (nn.Linear, "Linear is a class; give an instance"),
    ],
)
def test_a_wrong_signature_is_refused_in_one_line(wrong: object, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        wrap(wrong)
    assert "\n" not in str(refused.value)


THIRD_PARTY = """
import pytest
import torch
from separatrix.testing import MechanismContract


def attend(q, k, v, causal=False):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)


class TestGood(MechanismContract):
    @pytest.fixture
    def mechanism(self):
        return attend


class TestBroken(MechanismContract):
    @pytest.fixture
    def mechanism(self):
        return lambda q, k, v, causal=False: attend(q, k, v)


class TestForgotten(MechanismContract):
    pass
"""


@pytest.mark.exhaustive
def test_a_third_party_has_its_own_mechanism_tested(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(THIRD_PARTY)
    command = [sys.executable, "-m", "pytest", "-v", "-rs", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    outcomes = dict(re.findall(r"test_mine\.py::(\w+::\w+) (\w+)", done.stdout))
    for name in CHECKS:
        assert outcomes[f"TestForgotten::test_{name}"] == "ERROR"
    good = {name: outcomes[f"TestGood::test_{name}"] for name in CHECKS}
    skipped = {name for name, outcome in good.items() if outcome == "SKIPPED"}
    assert skipped == {
        *("counts", "counts_split", "causal_flag", "permutation", "chunks", "state_size"),
        *("gradient_of_extras", "decoding", "absent_tokens", "nobody_present"),
    }
    assert {good[name] for name in set(CHECKS) - skipped} == {"PASSED"}
    failed = {name for name in CHECKS if outcomes[f"TestBroken::test_{name}"] == "FAILED"}
    assert failed == {"causality"}
    assert "not tried, since causality failed" in done.stdout
    assert "causality: not causal: every token sees all later ones. No causal mask is applied" in done.stdout
    assert "it does not accept counts, and refuses them" in done.stdout
    assert "needs a fixture `mechanism`" in done.stdout
    assert "During handling" not in done.stdout
