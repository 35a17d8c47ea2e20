"""Proofs for every n: true ones hold, and an altered one holds only if it is still true."""

from __future__ import annotations

import copy
import json
import random
import time
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from altered_documents import changed, leaves, places, put, without
from command import invoke
from expectations import by_tier
from proof_oracle import PROOF_POINTS, is_true, proof, sealed
from separatrix.checker import check_file, check_proof
from separatrix.constructions import construction_named
from separatrix.core.errors import UsageError
from separatrix.exact.engines import certified
from separatrix.exact.proofs import certify_proof, prove
from separatrix.mechanisms import mechanism_named

Json = Any
SLOW = {*PROOF_POINTS} - {"no spike in D0, linear", "ties", "cold", "cross, linear", "identity, linear"}
MOST_ALTERED = 60
"""The most entries of lines that are altered in a long proof."""


def mechanism_word(mechanism: Json) -> str:
    """Return a mechanism as the command line spells it."""
    settings = ",".join(f"{name}={value}" for name, value in mechanism.items() if name != "name")
    return f"{mechanism['name']}:{settings}" if settings else str(mechanism["name"])


@pytest.mark.parametrize("name", PROOF_POINTS)
def test_true_proofs_hold(name: str) -> None:
    document = proof(name)
    report = check_proof(document)
    assert report.failed == []
    assert report.holds
    statements = sum(len(line["steps"]) + 1 for line in document["lines"])
    # Each turn cuts a range, and usually a step, in two.
    turns = sum(len(line["turns"]) for line in document["lines"])
    others = 2 + len(document["table"]) + 3
    assert statements + turns + others <= report.verified <= statements + 2 * turns + others


@pytest.mark.parametrize("name", PROOF_POINTS)
def test_written_proofs_are_those_of_the_oracle(name: str) -> None:
    mechanism, parameters, first_n = PROOF_POINTS[name]
    construction = "cross" if "r_Q" in parameters else "spike"
    written = certify_proof(prove(construction, mechanism_word(mechanism), parameters, start=first_n))
    assert written == proof(name)


@pytest.mark.parametrize("case", ["spike", "identity", "cross"])
def test_written_proofs_hold_at_random_points(case: str) -> None:
    rng = random.Random(case)
    for _ in range(30):
        parameters = {
            "d": rng.randint(4, 12),
            "m": rng.randint(1, 30),
            "a0": rng.choice(["0", "0.01", "0.3", "0.5"]),
            "a1": f"{rng.randint(60, 200) / 100}",
            "b": f"{rng.randint(1, 12) / 10}",
            "c": f"{rng.randint(1, 12) / 20}",
        }
        mechanism = rng.choice(
            ["softmax", "softmax:temperature=2", "softmax:temperature=1/3", "linear", "power:beta=8", "taylor:order=3"]
        )
        parameters |= {"spike": {}, "identity": {"form": "identity"}, "cross": {"r_Q": "1.7"}}[case]
        start = rng.choice([3, 50, 1000, 10**9, 10**20])
        proof = prove("cross" if case == "cross" else "spike", mechanism, parameters, start=start)
        report = check_proof(certify_proof(proof))
        assert report.holds, (mechanism, parameters, start, report.failed)


@pytest.mark.parametrize("name", PROOF_POINTS)
def test_the_oracle_agrees_with_the_certified_engine(name: str) -> None:
    document, rng = proof(name), random.Random(name)
    unit = document["parameters"]["d"] - 2
    mechanism = mechanism_named(mechanism_word(document["mechanism"]))
    jumps = [t for t, *_ in document["table"]]
    first = document["from"] // unit
    around = [t + offset for t in jumps for offset in (-1, 0, 1) if t + offset >= first]
    drawn = [first + int(10 ** rng.uniform(0, 25)) for _ in range(20)]
    for t in around + drawn:
        construction = construction_named(document["construction"]).read({**document["parameters"], "n": unit * t})
        count = certified.count(construction, mechanism)
        stated = next(row for row in reversed(document["table"]) if row[0] <= t)
        assert [count.low.p0, count.low.p1, count.low.only] == [*map(Fraction, stated[1:])], t


@pytest.mark.parametrize("name", by_tier([*PROOF_POINTS], slow=SLOW))
def test_an_altered_proof_holds_only_if_it_is_true(name: str) -> None:
    document, accepted = without(proof(name), ("sha256",)), set()
    entries = list(leaves(document["lines"]))
    if len(entries) > 500 or document["mechanism"]["name"] == "taylor":
        entries = random.Random(name).sample(entries, MOST_ALTERED)
    others_than_lines = [(place, value) for place, value in leaves(document) if place[0] != "lines"]
    for place, value in [*others_than_lines, *((("lines", *place), value) for place, value in entries)]:
        if value is None:
            others: list[Json] = [document["from"] // (document["parameters"]["d"] - 2), "blind", 1]
        else:
            others = [*changed(value), None]
        for other in others:
            forged = sealed(put(document, place, other))
            if check_proof(forged).holds:
                assert is_true(forged), (place, other)
                accepted.add(place[0])
    assert accepted <= {"parameters", "delta", "lines", "mechanism", "from", "requested"}
    assert "delta" in accepted


@pytest.mark.parametrize("name", ["linear", "cold", "no spike in D0"])
def test_every_change_is_noticed_by_the_hash_at_least(name: str) -> None:
    document = proof(name)
    for place, value in leaves(document):
        other = 7 if value is None else changed(value)[0]
        assert not check_proof(put(document, place, other)).holds, (place, other)
    for place, _ in places(document):
        assert not check_proof(without(document, place)).holds, place


@pytest.mark.parametrize("name", ["linear", "cold", "no spike in D0"])
def test_values_of_another_type_are_refused_under_a_new_hash(name: str) -> None:
    document = without(proof(name), ("sha256",))
    for place, value in leaves(document):
        for other in ([value], {}, bool(value), float(value) if isinstance(value, int) else 1.5):
            assert not check_proof(sealed(put(document, place, other))).holds, (place, other)


@pytest.mark.parametrize("name", ["linear", "power", "ties", "no spike in D0", "cross", "cross, taylor"])
def test_nothing_can_be_left_out_added_or_repeated_under_a_new_hash(name: str) -> None:
    document = without(proof(name), ("sha256",))
    for place, value in places(document):
        shorter = sealed(without(document, place))
        assert not check_proof(shorter).holds or is_true(shorter), place
        if isinstance(value, dict):
            assert not check_proof(sealed(put(document, (*place, "extra"), 0))).holds, place
        if isinstance(value, list) and value:
            assert not check_proof(sealed(put(document, place, [*value, value[-1]]))).holds, place
            swapped = [*value[1:], value[0]]
            forged = sealed(put(document, place, swapped))
            assert swapped == value or not check_proof(forged).holds or is_true(forged), place


def test_a_step_more_or_less_is_noticed_where_it_matters() -> None:
    document = proof("softmax")
    for i, line in enumerate(document["lines"]):
        steps = line["steps"]
        for k in range(1, len(steps)):
            assert not check_proof(sealed(without(document, ("lines", i, "steps", k)))).holds
            for shift in (-1, 1):
                assert not check_proof(sealed(put(document, ("lines", i, "steps", k, 0), steps[k][0] + shift))).holds
        # A wrong step that returns to the true count: both ends of every other step are right.
        t, least = steps[-1]
        detour = [*steps, [t + 10**6, max(least - 1, 0) if least else 1], [t + 10**6 + 1, least]]
        assert not check_proof(sealed(put(document, ("lines", i, "steps"), detour))).holds


@pytest.mark.parametrize("name", ["s1 = 2", "identity", "identity, taylor", "cross, taylor"])
def test_a_turn_that_is_left_out_or_moved_is_noticed(name: str) -> None:
    """The ends of a range prove nothing where the quotient is not monotone."""
    document = proof(name)
    places = [(i, k) for i, line in enumerate(document["lines"]) for k in range(len(line["turns"]))]
    assert places
    for i, k in random.Random(name).sample(places, min(len(places), 8)):
        turns = document["lines"][i]["turns"]
        before, turn, after = turns[:k], turns[k], turns[k + 1 :]
        for other in ([], [turn - 1], [turn + 1], [10 * turn]):
            report = check_proof(sealed(put(document, ("lines", i, "turns"), sorted([*before, *other, *after]))))
            assert any("turn" in line for line in report.failed), (i, other)


def test_turns_more_than_necessary_are_true() -> None:
    document = proof("identity, linear")
    assert not any(line["turns"] for line in document["lines"])
    assert check_proof(sealed(put(document, ("lines", 20, "turns"), [3, 4, 700]))).holds


def test_a_valley_between_true_ends_is_noticed() -> None:
    """A row that fires at both ends of a range, but not within it, unless the range is cut at the turn."""
    document = proof("softmax")
    i, line = next((i, line) for i, line in enumerate(document["lines"]) if len(line["steps"]) == 5)
    first, last = line["steps"][0], line["steps"][-1]
    counts = [least for _, least in line["steps"]]
    assert max(counts) > max(first[1], last[1])
    flat = put(document, ("lines", i, "steps"), [first, *([last] if last[1] != first[1] else [])])
    for turns in ([], line["turns"]):
        assert not check_proof(sealed(put(flat, ("lines", i, "turns"), turns))).holds


def test_requested_verdicts_and_their_counterexamples() -> None:
    lost = proof("linear")
    assert lost["verdict"] is None
    assert lost["counterexample"] == lost["eventually"]["from"] == 20
    asked = proof("linear", requested="saturated")
    assert asked["counterexample"] == asked["from"]
    assert check_proof(asked).holds
    for field, value in (("counterexample", None), ("requested", None), ("verdict", "saturated")):
        assert not check_proof(sealed({**asked, field: value})).holds
    kept = proof("readme", requested="distinguishes")
    assert (kept["verdict"], kept["counterexample"]) == ("distinguishes", None)
    assert check_proof(kept).holds


def test_the_statement_says_what_was_verified_and_what_is_not_claimed() -> None:
    text = " ".join(check_proof(proof("readme")).statement)
    assert "for every n = 100 t from 1000 on" in text
    assert "has 3 values" in text
    assert "distinguishes from n = 1000 on, for ever." in text
    assert "Not claimed: anything at other parameters, d and m included" in text
    text = " ".join(check_proof(proof("linear")).statement)
    assert "saturated from n = 20 on, for ever." in text


def test_a_proof_holds_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof("linear"), indent=1))
    result = invoke("check", str(file))
    assert result.returncode == 0
    assert "certificate holds" in result.stdout
    file.write_text(json.dumps(sealed(put(proof("linear"), ("verdict",), "blind"))))
    result = invoke("check", str(file))
    assert result.returncode == 1
    assert "verdict is wrong" in result.stdout


def test_flipped_characters_are_noticed(tmp_path: Path) -> None:
    file, rng = tmp_path / "proof.json", random.Random(1)
    text = json.dumps(proof("no spike in D0, linear"))
    file.write_text(text)
    assert check_file(file).holds
    for i in rng.sample(range(len(text)), 400):
        other = rng.choice('0123456789-+.eE"{}[],:/xyz\x00é')
        if other != text[i]:
            file.write_text(text[:i] + other + text[i + 1 :])
            with suppress(UsageError):
                assert not check_file(file).holds, (i, text[i], other)


NINES = "9" * 3990
EXPENSIVE: list[tuple[str, dict[tuple[str | int, ...], Json]]] = [
    ("softmax", {("from",): 10**1_000_000}),
    ("softmax", {("from",): 4 * 10**3989}),
    ("softmax", {("parameters", "m"): 10**1_000_000}),
    ("softmax", {("parameters", "m"): 10**3989}),
    ("softmax", {("parameters", "d"): 10**12, ("from",): 10**12 - 2}),
    ("softmax", {("parameters", "d"): 200_002, ("from",): 200_000}),
    ("softmax", {("parameters", "d"): True}),
    ("softmax", {("parameters", "a1"): NINES}),
    ("softmax", {("parameters", "a1"): f"1/{NINES}", ("parameters", "a0"): "0"}),
    ("softmax", {("parameters", "b"): f"0.{'3' * 3990}", ("parameters", "c"): f"0.{'7' * 3990}"}),
    ("softmax", {("parameters", "a1"): "9" * 1_000_000}),
    ("softmax", {("parameters", "form"): "identity"}),
    ("softmax", {("mechanism", "temperature"): NINES}),
    ("softmax", {("mechanism", "temperature"): f"1/{NINES}"}),
    ("softmax", {("mechanism",): {"name": "taylor", "order": 2}}),
    ("power", {("mechanism", "beta"): NINES}),
    ("power", {("mechanism", "beta"): f"1/{NINES}"}),
    ("power", {("mechanism", "beta"): "0"}),
    ("softmax", {("construction",): "cross"}),
    ("softmax", {("version",): True}),
    ("softmax", {("version",): 2}),
    ("softmax", {("lines", 20, "steps"): [[t, t % 2] for t in range(1, 60_000)]}),
    ("softmax", {("lines", 20, "steps"): []}),
    ("softmax", {("lines", 20, "steps", 0, 0): 10**1_000_000}),
    ("softmax", {("lines", 20, "steps", 1, 0): 10**3990}),
    ("softmax", {("lines", 20, "steps", 1, 1): 10**1_000_000}),
    ("softmax", {("lines", 20, "steps", 1): None}),
    ("softmax", {("lines", 20, "turns"): [10**1_000_000]}),
    ("softmax", {("lines", 20, "turns"): [10**3990]}),
    ("softmax", {("lines", 20, "turns"): [-1]}),
    ("softmax", {("lines", 20, "turns"): [*range(1, 202)]}),
    ("softmax", {("lines", 20, "turns"): [3, 3]}),
    ("softmax", {("lines", 20, "turns"): None}),
    ("softmax", {("lines", 20, "own_sign"): 1}),
    ("softmax", {("lines", 20, "row"): "mate"}),
    ("taylor", {("mechanism", "order"): 1000}),
    ("identity, taylor", {("mechanism", "order"): 12}),
    ("identity, taylor", {("parameters", "a1"): NINES}),
    ("identity, taylor", {("parameters", "c"): f"0.{'7' * 3990}"}),
    ("cross, taylor", {("parameters", "r_Q"): f"1/{NINES}"}),
    ("identity", {("parameters", "b"): f"0.{'3' * 3990}", ("parameters", "c"): f"0.{'7' * 3990}"}),
    ("identity, power", {("mechanism", "beta"): "1/2"}),
    ("cross", {("parameters", "form"): "ones"}),
    ("softmax", {("lines", 20, "signs"): [0, 1, 1]}),
    ("softmax", {("lines", 20): [1]}),
    ("softmax", {("lines",): [None] * 1_000_000}),
    ("softmax", {("table",): [[t, "0", "0", "0"] for t in range(1, 10_000)]}),
    ("softmax", {("table",): {}}),
    ("softmax", {("table", 0, 0): 10**1_000_000}),
    ("softmax", {("table", 0, 1): "1" * 10_000_000}),
    ("softmax", {("table", 0, 1): f"1/{2**13000}"}),
    ("softmax", {("table", 0): []}),
    ("softmax", {("verdict",): "[/red]\x1b[31m"}),
    ("softmax", {("requested",): ["blind"]}),
    ("softmax", {("counterexample",): 10**1_000_000}),
    ("softmax", {("eventually",): {"verdict": "partial", "from": 10**1_000_000}}),
    ("softmax", {("eventually",): ["partial", 4]}),
    ("softmax", {("delta",): "1/0"}),
    ("softmax", {("delta",): "0.5"}),
    ("softmax", {("parameters", "[/x]\n"): 1}),
]


@pytest.mark.parametrize(("name", "changes"), EXPENSIVE, ids=range(len(EXPENSIVE)))
def test_absurd_values_fail_soon_in_one_line_each(name: str, changes: dict[tuple[str | int, ...], Json]) -> None:
    document = proof(name)
    for place, value in changes.items():
        document = put(document, place, value)
    started = time.process_time()
    report = check_proof(document)
    assert time.process_time() - started < 10
    assert report.failed
    assert report.statement == ()
    assert all(len(line) < 160 and line.isprintable() and "[" not in line for line in report.failed)


def test_absurd_values_under_a_right_hash_fail_soon() -> None:
    """The hash of the file is no protection: whoever alters a file computes a new one."""
    for name, changes in EXPENSIVE:
        document = proof(name)
        for place, value in changes.items():
            document = put(document, place, value)
        with suppress(ValueError):  # JSON itself refuses integers of a million digits
            forged = sealed(document)
            started = time.process_time()
            assert not check_proof(forged).holds, changes
            assert time.process_time() - started < 10, [*changes]


@pytest.mark.parametrize(
    "document", [{**proof("linear"), "sha256": 1}, None, 1, "text", [], {}, {"format": "separatrix proof"}]
)
def test_what_is_no_proof_is_refused(document: Json) -> None:
    report = check_proof(document)
    assert not report.holds
    assert len(report.failed) == 1


def test_an_undecided_sign_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    document = copy.deepcopy(proof("cold"))
    assert check_proof(document).holds
    monkeypatch.setattr(import_module("separatrix.checker.proof"), "sign", lambda *_: None)
    (line, *_) = check_proof(document).failed
    assert line.endswith("cannot be verified")
