"""Certificates hold, and nothing in them can be changed without being noticed."""

from __future__ import annotations

import hashlib
import json
import math
import random
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import pytest

from altered_documents import Json, Place, changed, check_or_refuse, leaves, places, put, spelled, without
from expectations import by_tier
from separatrix.checker import check, check_file
from separatrix.checker.arithmetic import ends, exact_power, intervals
from separatrix.checker.kernels import Logit, PowerKernel, SoftmaxKernel, TaylorKernel, sign
from separatrix.checker.probability import binomial_sums, network
from separatrix.constructions import construction_named
from separatrix.core.parameters import UsageError
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.verdicts import certify, write_certificate
from separatrix.mechanisms import mechanism_named

Point = dict[str, Any]

SPIKE: Point = {"n": 40, "d": 6, "m": 5, "a0": "0.05", "a1": "0.5", "b": "0.55", "c": "0.3"}
CROSS: Point = {**SPIKE, "r_Q": "1.2"}
TIE: Point = {**SPIKE, "n": 16, "form": "identity"}
PERFECT: Point = {**TIE, "b": "0.5", "a1": "1"}
KERNELS = ("softmax", "linear", "power:beta=3", "power:beta=1/2", "taylor:order=2")

CASES: dict[str, tuple[str, str, Point]] = {
    **{
        f"{form}-{mechanism}": ("spike", mechanism, {**SPIKE, "form": form})
        for form, mechanism in product(("ones", "identity"), KERNELS)
    },
    **{f"cross-{mechanism}": ("cross", mechanism, CROSS) for mechanism in KERNELS},
    **{f"plain-{mechanism}": ("plain", mechanism, {"n": 60, "m": 5}) for mechanism in KERNELS},
    "tie": ("spike", "linear", TIE),
    "perfect-power": ("spike", "softmax", PERFECT),
    "blocks-of-one": ("spike", "softmax", {**SPIKE, "n": 4, "form": "identity"}),
    "one-other-block": ("spike", "taylor:order=3", {**SPIKE, "d": 4, "form": "identity"}),
    "no-spike-in-D0": ("spike", "softmax", {**SPIKE, "a0": "0"}),
    "perfect-power-plain": ("plain", "softmax", {"n": 64, "m": 3, "peak": "1/3"}),
    "logs-of-one-root": ("plain", "linear", {"n": 64, "m": 3, "base": "2", "tau": "0.3"}),
    "huge-n": ("spike", "softmax", {**SPIKE, "n": 4 * 10**18, "a1": "1.2"}),
    "huge-m": ("spike", "softmax", {**SPIKE, "m": 10**30}),
    "usual": ("spike", "softmax", {**SPIKE, "n": 1000, "d": 102, "a1": "1.2", "b": "0.2", "c": "0.1"}),
}


def made(construction: str, mechanism: str, point: Point, delta: str = "0.01") -> Json:
    """A certificate."""
    return certify(construction_named(construction).read(point), mechanism_named(mechanism), Fraction(delta))[1]


@cache
def text_of(case: str) -> str:
    """A certificate of the table, as JSON."""
    return json.dumps(made(*CASES[case]))


def certificate(case: str) -> Json:
    """A fresh copy of a certificate of the table."""
    return json.loads(text_of(case))


def sealed(document: Json) -> Json:
    """The document with the hash that belongs to it."""
    body = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return {**body, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def of_other_type(value: Json) -> list[Json]:
    """Nothing, or the same as something else."""
    return [None, [value], {}, bool(value), float(value) if isinstance(value, int) else 1]


@pytest.mark.parametrize("case", CASES)
def test_certificates_hold(case: str) -> None:
    document = certificate(case)
    report = check(document)
    assert report.failed == []
    assert report.holds
    assert report.verified == 2 + len(document["spike_weights"]) + len(document["thresholds"]) + 3 + 3 + 1


@pytest.mark.parametrize(
    "case",
    by_tier(
        ["tie", "perfect-power", "identity-taylor:order=2", "plain-linear", "cross-softmax"],
        slow={"tie", "perfect-power", "identity-taylor:order=2"},
    ),
)
def test_every_change_is_noticed_by_the_hash_at_least(case: str) -> None:
    document = certificate(case)
    for place, value in leaves(document):
        for other in (changed(value)[0], None):
            assert not check_or_refuse(put(document, place, other)), (place, other)
    for place, _ in places(document):
        assert not check_or_refuse(without(document, place)), place


SURVIVE: dict[str, set[str]] = {
    "ones-softmax": {"tau", "delta"},
    "ones-power:beta=3": {"tau", "delta"},
    "identity-softmax": {"c", "tau", "delta"},
    "tie": {"tau", "delta"},
    "cross-softmax": {"b", "c", "tau", "delta"},
    "cross-linear": {"r_Q", "tau", "delta"},
    "plain-linear": {"tau", "delta"},
    "plain-softmax": {"tau", "delta"},
    "blocks-of-one": {"c", "tau", "delta"},
    "usual": {"tau", "delta"},
}
"""What can be changed a little, with a new hash, without making a statement false.

No weight depends on tau; softmax weights depend neither on c (identity) nor on b or c (cross), and
linear ones not on r_Q.
A certificate with such a change is another true certificate, the one for the changed parameters.
"""


@pytest.mark.parametrize("case", by_tier(SURVIVE, slow={*SURVIVE} - {"usual"}))
def test_a_change_under_a_new_hash_is_noticed_or_makes_another_true_certificate(case: str) -> None:
    document = certificate(case)
    construction, mechanism, _ = CASES[case]
    survivors = set()
    for place, value in leaves(without(document, ("sha256",))):
        for other in changed(value):
            forged = sealed(put(document, place, other))
            if check_or_refuse(forged):
                assert forged == made(construction, mechanism, forged["parameters"], forged["delta"]), (place, other)
                survivors.add(place[-1])
    assert survivors == SURVIVE[case]


@pytest.mark.parametrize("case", by_tier(["tie", "cross-taylor:order=2", "plain-power:beta=3"], slow={"tie"}))
def test_values_of_another_type_are_noticed_under_a_new_hash(case: str) -> None:
    document = without(certificate(case), ("sha256",))
    for place, value in leaves(document):
        for other in of_other_type(value):
            assert not check_or_refuse(sealed(put(document, place, other))), (place, other)


@pytest.mark.parametrize("case", ["tie", "blocks-of-one", "cross-softmax", "plain-linear"])
def test_nothing_can_be_left_out_added_or_repeated_under_a_new_hash(case: str) -> None:
    document = without(certificate(case), ("sha256",))
    for place, value in places(document):
        assert not check_or_refuse(sealed(without(document, place))), place
        if isinstance(value, dict):
            assert not check_or_refuse(sealed(put(document, (*place, "extra"), 0))), place
        if isinstance(value, list):
            assert not check_or_refuse(sealed(put(document, place, [*value, value[-1]]))), place
            repeated = [*value[1:], value[-1]]
            assert repeated == value or not check_or_refuse(sealed(put(document, place, repeated))), place
    assert not check(sealed({**document, "extra": 0})).holds


def test_enclosures_may_be_wider_and_floats_are_the_nearest_ones() -> None:
    document = certificate("ones-softmax")
    low, high = map(Fraction, document["spike_weights"][0]["enclosure"])
    value = document["network"]["distinguish"]

    def with_enclosure(low: Fraction, high: Fraction) -> Json:
        return sealed(put(document, ("spike_weights", 0, "enclosure"), [spelled(low), spelled(high)]))

    def with_float(ulps: int) -> Json:
        return sealed(put(document, ("network", "distinguish"), value + ulps * math.ulp(value)))

    assert check(with_enclosure(low - Fraction(1, 10**25), high)).holds
    assert not check(with_enclosure(low - Fraction(1, 10**19), high)).holds
    assert not check(with_enclosure(high, high)).holds
    assert not check(with_enclosure(high, low)).holds
    assert check(with_float(0)).holds
    assert not check(with_float(1)).holds
    assert not check(with_float(-1)).holds


def test_zero_has_no_sign() -> None:
    document = made("plain", "linear", {"n": 20, "m": 5, "tau": "1"})
    assert document["network"]["fire_d0"] == 0
    assert check(document).holds
    forged = sealed(put(document, ("network", "fire_d0"), -0.0))
    assert check(forged).failed == ["network fire_d0 is written as minus zero"]


def test_the_order_of_entries_does_not_matter() -> None:
    document = certificate("tie")
    document["thresholds"].reverse()
    document["spike_weights"].reverse()
    assert not check(document).holds
    assert check(sealed(document)).holds


def test_what_cannot_be_decided_fails() -> None:
    """An enclosure so tight that 10000 bits do not tell its ends from the weight."""
    document = certificate("ones-softmax")
    a, r, n = Fraction("0.05"), Fraction("0.85"), 40
    with mpmath.workdps(3600):
        exponent = a * (a + r)
        ratio = mpmath.mpf(n) ** (mpmath.mpf(exponent.numerator) / exponent.denominator)
        digits = int(mpmath.floor(ratio / (ratio + n - 1) * mpmath.mpf(10) ** 3500))
    ends = [f"0.{str(end).rjust(3500, '0')}".rstrip("0") for end in (digits, digits + 1)]
    assert document["spike_weights"][0]["row"] == "spike"
    assert ends[0].startswith(document["spike_weights"][0]["enclosure"][0])
    report = check(sealed(put(document, ("spike_weights", 0, "enclosure"), ends)))
    assert report.failed == ["the enclosure of the spike's weight in D0, row spike, cannot be verified"]


def test_a_verdict_that_is_undecided_gets_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker knows no such word."""
    monkeypatch.setattr(import_module("separatrix.exact.verdicts.words"), "side_of", lambda *_: None)
    with pytest.raises(EngineRefusal, match="nothing to certify"):
        made(*CASES["tie"])


def test_flipped_characters_are_noticed(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    write_certificate(file, certificate("cross-taylor:order=2"))
    text, rng = file.read_text(), random.Random(1)
    assert check_file(file).holds
    for i, character in enumerate(text):
        other = rng.choice('0123456789-+.eE"{}[],:/ \n\tabxyz\x00é')
        if other == character or (character.isspace() and other.isspace()):
            continue
        file.write_text(text[:i] + other + text[i + 1 :])
        with suppress(UsageError):
            assert not check_file(file).holds, (i, character, other)


def test_whitespace_does_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(certificate("tie"), indent="\t \n") + "\n\n")
    assert check_file(file).holds


NO_CERTIFICATES: dict[str, bytes] = {
    "empty": b"",
    "text": b"hello",
    "binary": bytes(range(256)),
    "list": b"[1, 2]",
    "number": b"1",
    "no format": b'{"version": 1}',
    "no version": b'{"format": "separatrix certificate"}',
    "nested lists": b"[" * 1_000_000,
    "nested objects": b'{"a":' * 1_000_000,
    "nan": b'{"format": NaN, "version": 1}',
    "infinity": b'{"format": 1, "version": -Infinity}',
    "overflowing float": b'{"format": 1e400, "version": 1}',
    "long spelling of a float": b'{"format": 0.10, "version": 1}',
    "twice the same field": b'{"format": 1, "format": 1, "version": 1}',
    "a million digits": b'{"format": 1, "version": ' + b"9" * 1_000_000 + b"}",
    "too long": b" " * (1 << 27),
    "utf-16": '{"format": 1, "version": 1}'.encode("utf-16"),
    "pickle": b"cos\nsystem\n(S'exit 3'\ntR.",
}


@pytest.mark.parametrize("data", NO_CERTIFICATES.values(), ids=NO_CERTIFICATES)
def test_what_is_no_certificate_is_refused_in_one_line(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        check_file(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", Path("a\0b")):
        with pytest.raises(UsageError, match="cannot read"):
            check_file(path)
    for document in (None, 1, "text", [], {}, {"format": 1}):
        with pytest.raises(UsageError, match="no certificate"):
            check(document)


NINES = "9" * 3990
EXPENSIVE: list[tuple[str, dict[Place, Json]]] = [
    ("ones-softmax", {("parameters", "n"): 10**1_000_000}),
    ("ones-softmax", {("parameters", "n"): 4 * 10**3989}),
    ("ones-softmax", {("parameters", "m"): 10**1_000_000}),
    ("ones-softmax", {("parameters", "m"): 10**3989}),
    ("ones-softmax", {("parameters", "d"): 10**12, ("parameters", "n"): 10**12 - 2}),
    ("ones-softmax", {("parameters", "d"): 200_004, ("parameters", "n"): 200_002}),
    ("plain-softmax", {("parameters", "n"): 10**12}),
    ("plain-softmax", {("parameters", "base"): f"{2**13000}"}),
    ("plain-linear", {("parameters", "base"): f"1.{'0' * 3990}1"}),
    ("ones-softmax", {("parameters", "a1"): NINES}),
    ("ones-softmax", {("parameters", "a1"): f"1/{NINES}", ("parameters", "a0"): "0"}),
    ("ones-softmax", {("parameters", "b"): f"0.{'3' * 3990}", ("parameters", "c"): f"0.{'7' * 3990}"}),
    ("ones-softmax", {("parameters", "a1"): "9" * 1_000_000}),
    ("ones-power:beta=3", {("mechanism", "beta"): NINES}),
    ("ones-power:beta=3", {("mechanism", "beta"): f"1/{NINES}"}),
    ("identity-power:beta=3", {("mechanism", "beta"): NINES, ("parameters", "b"): f"0.{'0' * 3980}1"}),
    ("identity-taylor:order=2", {("mechanism", "order"): 10**9}),
    ("identity-taylor:order=2", {("mechanism", "order"): 1000, ("parameters", "a1"): NINES}),
    ("ones-softmax", {("neuron", "p0"): f"1/{2**13000}"}),
    ("ones-softmax", {("neuron", "p0"): "1" * 10_000_000}),
    ("ones-softmax", {("spike_weights", 0, "enclosure"): ["1" * 100_000, "1" * 100_000]}),
    ("ones-softmax", {("thresholds",): [None] * 1_000_000}),
    ("ones-softmax", {("thresholds", 0, "least"): 10**1_000_000}),
    ("ones-softmax", {("verdict",): "[/red]\x1b[31m"}),
    ("ones-softmax", {("delta",): "1/0"}),
    ("ones-softmax", {("delta",): "1e-2"}),
    ("ones-softmax", {("network", "fire_d0"): math.nan}),
    ("ones-softmax", {("parameters", "[/x]\n"): 1}),
]


@pytest.mark.parametrize(("case", "changes"), EXPENSIVE, ids=range(len(EXPENSIVE)))
def test_absurd_values_fail_at_once(case: str, changes: dict[Place, Json]) -> None:
    document = certificate(case)
    for place, value in changes.items():
        document = put(document, place, value)
    report = check(document)
    assert report.failed
    assert all(len(line) < 150 and line.isprintable() and "[" not in line for line in report.failed)


FAULTY_PARAMETERS: list[tuple[str, Point, str]] = [
    ("ones-softmax", {"n": 41}, "n is not a multiple of d-2"),
    ("ones-softmax", {"n": 2, "d": 4}, "n is less than 3"),
    ("ones-softmax", {"d": 3}, "d is less than 4"),
    ("ones-softmax", {"m": 0}, "m is less than 1"),
    ("ones-softmax", {"n": True}, "n is not a whole number"),
    ("ones-softmax", {"n": "40"}, "n is not a whole number"),
    ("ones-softmax", {"a0": "-0.1"}, "a0 is negative"),
    ("ones-softmax", {"a0": "0.5"}, "a0 is not less than a1"),
    ("ones-softmax", {"b": "0"}, "b is not positive"),
    ("ones-softmax", {"b": 1}, "b is not an exact number written as text"),
    ("ones-softmax", {"b": "2/4"}, "b is not in lowest terms"),
    ("ones-softmax", {"c": "-1"}, "c is not positive"),
    ("ones-softmax", {"tau": "-0"}, "tau is written as minus zero"),
    ("ones-softmax", {"form": "zeros"}, "form is not one of: ones, identity"),
    ("cross-softmax", {"r_Q": "0"}, "r_Q is not positive"),
    ("plain-softmax", {"base": "1"}, "base is not more than 1"),
    ("plain-softmax", {"spread": "0.1"}, "spread is not 0, and only equal scores have a closed form"),
    ("plain-softmax", {"peak": "0"}, "peak is not positive"),
    ("plain-softmax", {"n": 200_002}, "n is not between 3 and 200001"),
]


@pytest.mark.parametrize(("case", "changes", "fault"), FAULTY_PARAMETERS)
def test_parameters_are_checked(case: str, changes: Point, fault: str) -> None:
    document = certificate(case)
    document["parameters"].update(changes)
    assert check(sealed(document)).failed == [fault]


@pytest.mark.parametrize("form", ["ones", "identity"])
@pytest.mark.parametrize("mechanism", ["linear", "power:beta=3"])
@pytest.mark.parametrize(("n", "d"), [(4, 4), (6, 5), (8, 6), (5, 7)])
def test_fractions_are_those_of_all_tokens_and_all_signs(form: str, mechanism: str, n: int, d: int) -> None:
    """Every token as a row of rationals, every sign vector, nothing clever."""
    point = {**SPIKE, "n": n, "d": d, "a1": "1.5", "form": form}
    document = made("spike", mechanism, point)
    assert check(document).holds
    b, c, tau = Fraction(point["b"]), Fraction(point["c"]), Fraction(point["c"]) + Fraction(1, 10)
    degree = 3 if mechanism.startswith("power") else 1

    def attended(a: Fraction) -> list[list[Fraction]]:
        tokens = [[Fraction(0)] * d for _ in range(n)]
        for i, token in enumerate(tokens):
            token[1 + i * (d - 2) // n], token[-1] = b, c
        tokens[0][0] = a
        rows = []
        for q in tokens:
            dots = [
                sum(q) * sum(k) if form == "ones" else sum(x * y for x, y in zip(q, k, strict=True)) for k in tokens
            ]
            u = [Fraction(dot) ** degree for dot in dots]
            rows.append([sum(x * k[i] for x, k in zip(u, tokens, strict=True)) / sum(u) for i in range(d)])
        return rows

    both = [attended(Fraction(point[a])) for a in ("a0", "a1")]
    fires = [
        [any(sum(x * s for x, s in zip(row, y, strict=True)) > tau for row in rows) for rows in both]
        for y in product((1, -1), repeat=d)
    ]
    counted = [sum(d0 for d0, _ in fires), sum(d1 for _, d1 in fires), sum(d1 and not d0 for d0, d1 in fires)]
    assert [Fraction(document["neuron"][name]) * 2**d for name in ("p0", "p1", "only_d1")] == counted


def test_exact_powers() -> None:
    assert exact_power(Fraction(7**30, 2**60), Fraction(7, 30)) == Fraction(7**7, 2**14)
    assert exact_power(Fraction(10**18), Fraction(1, 18)) == 10
    assert exact_power(Fraction(10**18 + 1), Fraction(1, 18)) is None
    assert exact_power(Fraction(10), Fraction(10**9)) is None


def test_signs_of_sums_of_scores() -> None:
    two, sixteen = Fraction(2), Fraction(16)
    quarter, half, one = (Logit(Fraction(1, k), sixteen) for k in (4, 2, 1))
    assert sign(SoftmaxKernel(Fraction(1)), [(Fraction(8), quarter), (Fraction(-4), half)]) == 0
    assert (
        sign(SoftmaxKernel(Fraction(1)), [(Fraction(8), quarter), (Fraction(-1), one), (Fraction(1, 10**2500), half)])
        == 1
    )
    root, square = Logit(Fraction(1, 2), two), Logit(Fraction(1), two)
    assert sign(SoftmaxKernel(Fraction(1)), [(Fraction(141421356237, 10**11), root), (Fraction(-1), square)]) == -1
    assert sign(SoftmaxKernel(Fraction(1)), [(Fraction(141421356238, 10**11), root), (Fraction(-1), square)]) == 1
    assert (
        sign(
            PowerKernel(Fraction(1, 2)),
            [(Fraction(2), Logit(Fraction(1), two)), (Fraction(-1), Logit(Fraction(4), two))],
        )
        == 0
    )
    assert sign(TaylorKernel(2), [(Fraction(1), root), (Fraction(-1), square)]) == -1
    assert sign(TaylorKernel(2), [(Fraction(1), root), (Fraction(-1), root)]) == 0
    line = [(Fraction(factor), Logit(Fraction(times), two)) for factor, times in ((1, 1), (-2, 2), (1, 3))]
    assert sign(TaylorKernel(1), line) == 0
    assert sign(TaylorKernel(2), line) == 1


@pytest.mark.parametrize("bits", [128, 512, 2048])
def test_intervals_contain_what_more_precise_ones_say(bits: int) -> None:
    coarse, fine = intervals(bits), intervals(bits + 200)
    for value in (Fraction(1, 3), Fraction(7), Fraction(10**4, 7), Fraction(1, 10**9) + 1):
        for function in ("exp", "log"):
            low, high = ends(getattr(coarse, function)(coarse.rational(value)))
            finer_low, finer_high = ends(getattr(fine, function)(fine.rational(value)))
            assert low < finer_low < finer_high < high


def test_binomial_sums() -> None:
    for trials in range(1, 12):
        direct = {k: sum(math.comb(trials, i) for i in range(k)) for k in range(trials + 2)}
        assert binomial_sums(trials, direct) == direct


@pytest.mark.parametrize("m", [1, 7, 10**6])
@pytest.mark.parametrize("p", [Fraction(1, 2**k) for k in (1, 20, 120, 140, 5000)])
def test_network_probabilities_are_enclosed(p: Fraction, m: int) -> None:
    """Against mpmath's floats at a precision at which nothing is lost."""
    found = network(p, 1 - p, (1 - p) / 3, m)
    with mpmath.workprec(12000):
        p_0, only = (mpmath.mpf(p.numerator) / p.denominator, mpmath.mpf((1 - p).numerator) / (1 - p).denominator / 3)
        silent = (1 - p_0) ** m
        truth = (1 - silent, 1 - p_0**m, silent - (1 - p_0 - only) ** m)
        for (low, high), value in zip(found, truth, strict=True):
            lowest, highest = (mpmath.mpf(end.numerator) / end.denominator for end in (low, high))
            slack = value * mpmath.mpf(2) ** -100 + mpmath.mpf(2) ** -9000
            assert lowest - slack <= value <= highest + slack
            assert highest - lowest <= slack


def test_wide_certificates_are_checked_in_seconds() -> None:
    point = {**SPIKE, "d": 10002, "n": 10**6, "a1": "1.2", "b": "0.2"}
    assert check(made("spike", "softmax", {**point, "form": "identity"})).holds


def test_the_checker_loads_nothing_it_checks() -> None:
    program = """
import sys
import separatrix.checker
names = [name for name in sys.modules if name.startswith("separatrix.")]
core = ("", ".errors", ".files", ".rendering", ".secrets")
allowed = {f"separatrix.core{name}" for name in core}
foreign = [name for name in names if ".".join(name.split(".")[:3]) not in allowed and ".checker" not in name]
assert not foreign, foreign
loaded = {"flint", "numpy", "scipy", "torch"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_the_command_line(tmp_path: Path) -> None:
    good, bad, none = (tmp_path / name for name in ("good.json", "bad.json", "none.json"))
    write_certificate(good, certificate("tie"))
    write_certificate(bad, put(certificate("tie"), ("neuron", "p0"), "1/3"))
    none.write_text("[]")

    def run(file: Path, *more: str) -> subprocess.CompletedProcess[str]:
        program = "from separatrix.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", program, "check", str(file), *more], capture_output=True, text=True
        )

    ran = run(good)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "holds" in ran.stdout
    ran = run(bad, "--json")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert json.loads(ran.stdout)["failed"] == check(json.loads(bad.read_text())).failed
    ran = run(none)
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)
    assert str(none) in ran.stderr
