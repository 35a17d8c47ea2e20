"""Mechanisms: the fast form is the definition, counts are repetition, and the kernels agree."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from separatrix.core.numbers.logforms import LogForm
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import MECHANISMS, Linear, Mechanism, ScoreMechanism, Softmax, examples, mechanism_named
from separatrix.mechanisms.load import find_mechanisms

SPELLINGS = [
    *(each.spelled for each in examples() if isinstance(each, ScoreMechanism)),
    *("softmax:temperature=1/3", "power:beta=1/2", "power:beta=1", "taylor:order=9"),
]


def test_typed_shapes_are_checked(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--typed-shapes"):
        pytest.skip("needs --typed-shapes")
    from jaxtyping import TypeCheckError

    q, k = torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 4)
    with pytest.raises(TypeCheckError):
        Softmax()(q, k, k)


@pytest.fixture(params=SPELLINGS)
def mechanism(request: pytest.FixtureRequest) -> ScoreMechanism:
    found = mechanism_named(request.param)
    assert isinstance(found, ScoreMechanism)
    return found


def tokens(
    queries: int = 37, keys: int = 37, width: int = 5, features: int = 7, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, ...]:
    """Positive tokens, so that every kernel here has positive scores."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((2, 3, queries, width), (2, 3, keys, width), (2, 3, keys, features))
    return tuple(torch.rand(shape, generator=generator, dtype=torch.float64).to(dtype) + 0.1 for shape in shapes)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_fast_form_is_the_definition(mechanism: Mechanism, causal: bool, dtype: torch.dtype) -> None:
    q, k, v = tokens(dtype=dtype)
    bound = 64 * torch.finfo(dtype).eps
    torch.testing.assert_close(
        mechanism(q, k, v, causal=causal), mechanism.definition(q, k, v, causal=causal), rtol=bound, atol=bound
    )


def test_blocks_of_queries_do_not_show(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.mechanisms._blocks.MAX_SCORES", 37 * 6 * 4)
    q, k, v = tokens()
    for causal in (False, True):
        torch.testing.assert_close(mechanism(q, k, v, causal=causal), mechanism.definition(q, k, v, causal=causal))


def test_counts_are_repetition(mechanism: Mechanism) -> None:
    q, k, v = tokens(queries=11, keys=4)
    counts = torch.tensor([1, 3, 2, 5])
    repeated = [x.repeat_interleave(counts, dim=-2) for x in (k, v)]
    literal = mechanism.definition(q, *repeated)
    torch.testing.assert_close(mechanism(q, k, v, counts.double()), literal)
    torch.testing.assert_close(mechanism.definition(q, k, v, counts.double()), literal)


def test_the_future_changes_nothing(mechanism: Mechanism) -> None:
    q, k, v = tokens()
    before = mechanism(q, k, v, causal=True)
    k, v = k.clone(), v.clone()
    k[..., 20:, :] += 1
    v[..., 20:, :] -= 1
    after = mechanism(q, k, v, causal=True)
    assert torch.equal(before[..., :20, :], after[..., :20, :])
    assert not torch.equal(before[..., 20:, :], after[..., 20:, :])


def test_permuting_keys_changes_nothing(mechanism: Mechanism) -> None:
    q, k, v = tokens()
    order = torch.randperm(37, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(mechanism(q, k[..., order, :], v[..., order, :]), mechanism(q, k, v))


def test_counted_keys_have_no_order(mechanism: Mechanism) -> None:
    q, k, v = tokens()
    with pytest.raises(UsageError, match="counted tokens have no order"):
        mechanism(q, k, v, torch.ones(37, dtype=torch.float64), causal=True)


def test_gradients(mechanism: Mechanism) -> None:
    q, k, v = (x[:1, :1, :4].clone().requires_grad_() for x in tokens())
    assert torch.autograd.gradcheck(lambda *args: mechanism(*args), (q, k, v))


def test_attention_is_an_average_of_values(mechanism: Mechanism) -> None:
    q, k, _ = tokens()
    ones = torch.ones(2, 3, 37, 1, dtype=torch.float64)
    torch.testing.assert_close(mechanism(q, k, ones), ones)


def test_softmax_is_torchs() -> None:
    q, k, v = tokens(width=7)
    ours = Softmax()(q, k, v)
    torch.testing.assert_close(ours, torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0))


def test_softmax_bears_large_logits() -> None:
    q, k, v = tokens()
    for scale in (1e4, -1e4):
        out = Softmax()(q * scale, k, v)
        assert out.isfinite().all()


def test_power_one_is_linear_and_high_taylor_is_softmax() -> None:
    q, k, v = tokens()
    torch.testing.assert_close(mechanism_named("power:beta=1")(q, k, v), Linear()(q, k, v))
    torch.testing.assert_close(mechanism_named("taylor:order=40")(q, k, v), Softmax()(q, k, v))
    order_one = mechanism_named("taylor:order=1").definition(q, k, v)
    weights = 1 + q @ k.mT
    torch.testing.assert_close(order_one, weights / weights.sum(-1, keepdim=True) @ v)


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(base=st.floats(0.01, 20), step=st.floats(0, 20))
def test_the_three_kernels_are_one(spelling: str, base: float, step: float) -> None:
    """The torch score, the float64 log ratio and the exact ratio of each kernel agree."""
    kernel = mechanism_named(spelling)
    assert isinstance(kernel, ScoreMechanism)
    scores = kernel.score(torch.tensor([base, base + step], dtype=torch.float64))
    literal = (scores[1] / scores[0]).item()
    fast = np.exp(kernel.log_ratio(np.array(base), np.array(step))).item()
    with ctx.workprec(200):
        log_two = LogForm.log(fmpq(2))
        unit = float(arb(2).log())
        base_form, step_form = (_dyadic(x / unit) * log_two for x in (base, step))
        exact = float(arb(kernel.ratio(base_form, step_form)))
    assert fast == pytest.approx(literal, rel=1e-11)
    assert exact == pytest.approx(literal, rel=1e-11)


def _dyadic(x: float) -> fmpq:
    top, bottom = x.as_integer_ratio()
    return fmpq(top, bottom)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_log_ratios_of_tiny_steps_keep_their_digits(spelling: str) -> None:
    kernel = mechanism_named(spelling)
    assert isinstance(kernel, ScoreMechanism)
    tiny = 2.0**-60
    fast = kernel.log_ratio(np.array(0.75), np.array(tiny)).item()
    h = 2.0**-20
    high, low = kernel.score(torch.tensor([0.75 + h, 0.75 - h], dtype=torch.float64)).log()
    slope = ((high - low) / (2 * h)).item()
    assert fast == pytest.approx(slope * tiny, rel=1e-6)


def test_sixteen_bit_sums_do_not_overflow() -> None:
    """A sum of 100,000 scores exceeds float16; it is added up in float32."""
    k = torch.full((1, 1, 100_000, 1), 2.0, dtype=torch.float16)
    assert Linear()(k[:, :, :1], k, k).item() == 2.0
    assert mechanism_named("power:beta=2")(k[:, :, :1], k, k).item() == 2.0


NEW = """\"\"\"The mean of all values.\"\"\"

from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, safe_divide


class Uniform(StreamedMechanism):
    name = "uniform"
    formula = "1/n"
    source = "tests"

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        return safe_divide(copies, copies.sum(-1, keepdim=True)).expand(logits.shape)
"""


COMMANDS = """
from separatrix.cli.application import app

point = "n=1000 d=102 m=12 a0=0.01 a1=1.2 b=0.2 c=0.1"
for words in ("list mechanisms --json", f"verdict spike uniform {point} --json"):
    app(words.split(), standalone_mode=False)
    print("\\f")
"""


def test_one_file_adds_a_mechanism(tmp_path: Path) -> None:
    """In a copy of the project: the list, a verdict and the contract know it with no other change."""
    here = Path(__file__).parents[2]
    for name in ("src", "tests"):
        shutil.copytree(here / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(here / name, tmp_path)
    (tmp_path / "src/separatrix/mechanisms/kernels/uniform.py").write_text(NEW)

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    listed, verdict = (json.loads(each) for each in run("-c", COMMANDS).split("\f")[:2])
    assert {each["name"] for each in listed} == {"uniform", *MECHANISMS}
    assert (verdict["mechanism"], verdict["verdict"]) == ("uniform", "blind")
    alone = ("-p", "no:cacheprovider", "-p", "no:xdist")
    tested = run("-m", "pytest", *alone, "tests/contract/test_contract.py", "-k", "uniform")
    assert "2 passed" in tested  # the short checks and the long ones


def test_mechanisms_are_in_order_of_folder_and_name() -> None:
    places = [(each.__module__.split(".")[2], name) for name, each in MECHANISMS.items()]
    assert places == sorted(places, key=lambda place: (place[0] != "kernels", place))
    assert all(each.name == name for name, each in MECHANISMS.items())


def test_two_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("zoo", "zoo/first", "zoo/second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    for name in ("first", "second"):
        (tmp_path / "zoo" / name / "uniform.py").write_text(NEW)
    with pytest.raises(ImportError, match="two mechanisms are named uniform"):
        find_mechanisms(importlib.import_module("zoo"))
