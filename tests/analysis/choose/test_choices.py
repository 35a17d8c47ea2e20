"""What is chosen, against verdicts, literal counts of bytes and formulas written out again."""

from __future__ import annotations

import json
import re

import pytest
import torch

import separatrix as sx
from separatrix.analysis.choose import Budget, ChoiceStatus, choose
from separatrix.analysis.choose import task_cells as choose_tasks
from separatrix.analysis.choose.budget import format_bytes, read_memory
from separatrix.analysis.choose.construction_cells import BOTH, nearest_point
from separatrix.analysis.choose.task_cells import task_at, task_cell
from separatrix.analysis.costs.cost import count_operations
from separatrix.cli.application import run as typed
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.parameters import UsageError
from separatrix.exact.verdicts.words import FAILURES
from separatrix.layers import Model
from separatrix.mechanisms import mechanism_named
from separatrix.pages.choice import page
from separatrix.sweeps.run import run as sweep
from separatrix.sweeps.store import open_store
from separatrix.sweeps.work import WorkList
from sweep_tools import Inline
from training_plan import trained

FEW = "softmax,linear,elu,delta"


@pytest.fixture(scope="module")
def found():
    return choose(20_000, "bfloat16", "1GiB", must="critical", mechanisms=FEW, layers=2, heads=3, width=16)


def row(found, name):
    return next(each for each in found.mechanisms if each.mechanism == name)


def cell(found, mechanism, name):
    return row(found, mechanism).sees[name]


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "elu"])
def test_a_cell_says_what_a_verdict_says_at_the_nearest_length(found, mechanism):
    for each in row(found, mechanism).sees.values():
        exact = each.kind in ("certified", "closed")
        if each.word in ("lost", "cannot") or not exact:
            continue
        asked = sx.verdict(each.name, mechanism, n=each.n)
        assert (each.word, each.distinguish) == (asked.word, asked.outcome.distinguish)
        assert each.command == f"separatrix verdict {each.name} {mechanism} n={each.n}"
        assert abs(each.n - 20_000) <= asked.construction.step


@pytest.mark.parametrize(("dtype", "n"), [("bfloat16", 131_072), ("bfloat16", 100), ("float32", 131_072)])
def test_what_is_one_number_of_the_format_is_said_and_lost_only_if_it_would_be_seen(dtype, n):
    counts = {True: 0, False: 0}
    for each in choose(n, dtype, mechanisms="softmax,linear,hedgehog").mechanisms:
        for shown in each.sees.values():
            if shown.kind not in ("certified", "closed"):
                continue
            asked = sx.verdict(shown.name, each.mechanism, n=shown.n)
            unit = nearest_point(shown.name, n).unit
            read = [torch.tensor(v * unit, dtype=torch.float64) for v in (asked.outcome.v0, asked.outcome.v1)]
            same = bool(read[0].to(getattr(torch, dtype)) == read[1].to(getattr(torch, dtype)))
            assert (shown.word == "lost") == (same and asked.word not in FAILURES), shown
            assert (f"the same {dtype}" in shown.evidence) == same == shown.same_in_format, shown
            assert (shown.displayed_word == BOTH) == (same and asked.word in FAILURES)
            assert shown.as_json()["same_in_format"] is same
            counts[same] += 1
    assert counts[False]
    assert counts[True] >= (5 if dtype == "bfloat16" else 1)


def test_lost_is_said_of_what_is_seen_in_exact_arithmetic(monkeypatch):
    """At no reference point: it takes a threshold between two numbers that round to one."""
    kind = CONSTRUCTIONS["location"]
    monkeypatch.setattr(kind, "example", {**kind.example, "d": 6, "m": 2000, "tau": "0.30001"})
    nearest_point.cache_clear()
    try:
        fine, coarse = (choose(131_072, x, must="location", mechanisms="linear") for x in ("fp64", "bf16"))
    finally:
        nearest_point.cache_clear()
    seen, lost = (cell(found, "linear", "location") for found in (fine, coarse))
    assert (seen.word, seen.same_in_format) == ("distinguishes", False)
    assert (lost.word, lost.same_in_format, lost.distinguish) == ("lost", True, seen.distinguish)
    assert row(coarse, "linear").excluded_by == ("the difference is lost in bfloat16 on location",)


def test_equal_rows_are_out_of_reach_of_every_reader_and_not_of_this_one_alone():
    found = choose(20_000, mechanisms="softmax,linear")
    assert {each.name for each in row(found, "linear").sees.values() if each.word == "cannot"} == {
        "injectivity",
        "duplication",
    }
    assert {each.name for each in row(found, "softmax").sees.values() if each.word == "cannot"} == {"duplication"}
    for name in ("injectivity", "duplication"):  # the formula once more, on distinct tokens
        point = nearest_point(name, 20_000)
        rows = []
        for label in (0, 1):
            tokens = point.token_groups(label, torch.float64)
            weights = (tokens.queries @ tokens.keys.T) * tokens.counts
            rows.append(weights / weights.sum(-1, keepdim=True) @ tokens.values)
        torch.testing.assert_close(*rows, rtol=1e-12, atol=0)


def test_what_is_kept_by_all_layers(found):
    layers, heads, width, n = 2, 3, 16, 20_000
    numbers = sum(1 for _ in range(layers) for _ in range(heads) for _ in ("k", "v") for _ in range(width))
    counters = layers * 8
    cache = 2 * numbers * n + counters
    assert row(found, "softmax").kept_bytes == cache
    assert row(found, "delta").kept_bytes == layers * heads * width * width * 4 + counters
    sums = layers * heads * width * (width + 1) * 4 + counters
    assert row(found, "elu").kept_bytes == row(found, "linear").kept_bytes == sums
    exact = choose(20_000, "bf16", cache, mechanisms="softmax", layers=2, heads=3, width=16)
    less = choose(20_000, "bf16", cache - 1, mechanisms="softmax", layers=2, heads=3, width=16)
    assert (exact.mechanisms[0].status, less.mechanisms[0].status) == (ChoiceStatus.FITS, ChoiceStatus.EXCLUDED)
    assert "it keeps" in less.mechanisms[0].excluded_by[0]


def test_what_must_be_seen_decides(found):
    assert {each.mechanism: each.status for each in found.mechanisms} == {
        "softmax": ChoiceStatus.FITS,
        "delta": ChoiceStatus.OPEN,
        "elu": ChoiceStatus.EXCLUDED,
        "linear": ChoiceStatus.EXCLUDED,
    }
    assert row(found, "linear").excluded_by == ("blind with this reader on critical",)
    assert row(found, "delta").not_known == ("critical",)
    assert "all 20,000 tokens are needed" in cell(found, "delta", "critical").evidence


def test_constructions_that_end_before_are_asked_only_where_they_must_be_seen():
    found = choose(20_000, mechanisms="linear")
    assert found.not_asked == {
        **dict.fromkeys(("routing", "parity", "recall"), "ends at n=4,096"),
        "rough": "needs every token",
    }
    assert [*found.asked_at] == [name for name in CONSTRUCTIONS if name not in found.not_asked]
    asked = choose(20_000, must=["parity"], mechanisms="linear")
    assert asked.asked_at["parity"] == 4096
    shown = cell(asked, "linear", "parity")
    assert (shown.word, shown.n) == ("not known", None)
    assert (shown.elsewhere.word, shown.elsewhere.n) == ("cannot", 4096)
    assert shown.as_json()["elsewhere"]["n"] == 4096
    assert row(asked, "linear").status is ChoiceStatus.OPEN
    assert asked.elsewhere == ("parity",)


def test_every_answer_says_the_length_it_is_of_on_the_terminal_and_on_the_page(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ["choose", "n=20000", "--must", "recall,needle", "--mechanisms", "softmax,delta,linear"]
    assert typed(words) == 0
    shown = capsys.readouterr().out
    legend = " ".join(shown.split())
    assert "must be seen: recall (has no length near 20,000), needle (has no length near 20,000)" in legend
    assert "only at other lengths, which do not count here:" in legend
    assert re.search(r"^softmax +D n=4,096 *$", shown, re.MULTILINE)
    assert "j regression, k majority" in legend  # no column of one letter for what was asked elsewhere
    assert "3 fit, but recall and needle are unknown" in legend
    assert "excluded" not in legend
    text = page(choose(20_000, must="recall,needle", mechanisms="softmax,delta"))
    assert "recall (no length near n)</span>" in text
    assert "<b>·</b><small>D at n=4,096</small>" in text


def test_heads_that_share_keys_and_values_keep_them_once(found):
    shared = choose(20_000, mechanisms=FEW, layers=2, heads=8, kv_heads=2, width=16)
    alone = choose(20_000, mechanisms=FEW, layers=2, heads=2, width=16)
    for each in alone.mechanisms:
        assert row(shared, each.mechanism).kept_bytes == each.kept_bytes
    assert shared.model == "2 layers of 8 heads (2 of keys and values) of width 16"
    assert shared.as_json()["kv_heads"] == 2
    assert found.as_json()["kv_heads"] is None
    assert (row(shared, "softmax").kept_bytes - 2 * 8) * 4 == 2 * 8 * 16 * 2 * 2 * 20_000


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_what_is_kept_is_what_layers_hold(dtype):
    """One number in `choose`, in layers, and in the tensors of their caches after decoding."""
    names = "window:size=64|simplicial|path|softmax|linear|elu|gla|rotary:inner=gla|alibi:inner=elu|fox"
    names += "|rotary:inner=window:size=8|window-linear:size=8|window-global:size=8,globals=3"
    found = choose(100, dtype, mechanisms=names.split("|"), layers=2, heads=4, kv_heads=2, width=16)
    for each in found.mechanisms:
        torch.manual_seed(0)
        model = Model(each.mechanism, 32, 2, depth=2, outputs=3, vocabulary=5).to(getattr(torch, dtype))
        symbols, caches = torch.zeros(1, 100, dtype=torch.long), None
        with torch.no_grad():
            for here in (slice(0, 97), slice(97, 98), slice(98, 100)):
                _, caches = model(symbols[:, here], cache=caches)
        held = sum(x.numel() * x.element_size() for cache in caches for x in cache.tensors())
        assert each.kept_bytes == model.state_bytes(100) == held, each.mechanism


def test_a_cache_just_larger_than_the_memory_is_excluded_by_its_bytes():
    (only,) = choose(131_072, memory="4.5GiB", mechanisms="softmax").mechanisms
    assert only.excluded_by == ("it keeps 4,831,838,304 bytes, more than 4,831,838,208",)


def test_who_does_not_decode_says_so(capsys):
    (only,) = choose(300, mechanisms="linformer").mechanisms
    assert only.note.startswith("has no causal form: it cannot decode")
    assert typed(["choose", "n=300", "--mechanisms", "linformer,softmax"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "linformer has no causal form: it cannot decode, and its operations are not causal." in shown
    assert "Operations of a causal pass are counted at 75 to 300 tokens." in shown


def test_operations_are_counted_where_a_window_has_an_end_and_not_beyond_n():
    n, size = 131_072, 4096
    (far,) = choose(n, mechanisms=f"window:size={size}").mechanisms
    (near,) = choose(2000, mechanisms=f"window:size={size}").mechanisms
    assert far.operations_counted_at == (4 * size, 8 * size, 16 * size)
    assert far.operations_exponent == pytest.approx(1, abs=0.1)
    assert near.operations_counted_at == (500, 1000, 2000)
    assert near.operations_exponent == pytest.approx(2, abs=1e-6)
    assert near.as_json()["operations_counted_at"] == [500, 1000, 2000]


def test_operations_that_are_followed_are_those_that_are_done(monkeypatch):
    for name in ("softmax", "elu", "window:size=32"):
        done = count_operations(mechanism_named(name), [64, 256])
        monkeypatch.setattr("separatrix.analysis.costs.cost.MAX_COMPUTED_LENGTH", 1)
        assert count_operations(mechanism_named(name), [64, 256]) == done
        monkeypatch.undo()


def test_where_nothing_fits_there_is_a_table_and_the_nearest(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert typed(["choose", "n=20000", "memory=1KiB", "--mechanisms", FEW]) == 0
    shown = capsys.readouterr().out
    assert "No mechanism is known to fit; of all, delta keeps the least, 2.25 MiB." in shown
    assert re.search(r"^softmax +D D D .* +703 MiB +– *$", shown, re.MULTILINE)
    found = choose(20_000, memory="1MiB", must="critical,level", mechanisms="softmax,linear,delta")
    assert found.nearest == (
        "No mechanism is known to fit; of those known to see critical, level, softmax keeps the least, 703 MiB."
    )
    blind = choose(20_000, must="critical,averaging", mechanisms="linear,elu")
    assert blind.nearest == (
        "No mechanism is known to fit; the nearest is linear "
        "(blind with this reader on critical; blind with this reader on averaging)."
    )
    assert "No mechanism is known to fit" in page(blind)
    assert choose(20_000, mechanisms="softmax").nearest == ""


def test_the_rank_of_a_state_excludes_nobody_from_recall():
    """More values than rows of the state: some combination of them is lost, which is not what recall asks."""
    found = choose(40, must="recall", mechanisms="delta,causal-linear", width=16, literal=True)
    for mechanism in ("delta", "causal-linear"):
        shown = cell(found, mechanism, "recall")
        asked = sx.readers("recall", mechanism, n=40)
        assert asked.verdict.word.value != "cannot"
        assert shown.word == asked.fixed.word
        assert not any("proved" in reason for reason in row(found, mechanism).excluded_by)
    assert any(each.word.value == "can" for each in sx.readers("recall", "delta", n=40).statements)


@pytest.mark.parametrize(
    ("mechanism", "word", "kind"),
    [
        ("softmax", "can", "written down"),
        ("causal-linear", "cannot", "proved"),
        ("delta", "not known", "not known"),
        ("gla", "not known", "not known"),
        ("hedgehog", "not known", "not known"),
    ],
)
def test_written_weights_count_only_if_they_score_as_well_as_the_best_rule(mechanism, word, kind):
    shown = task_cell("needle", mechanism_named(mechanism), Budget.read({"n": 16, "dtype": "float32"}))
    assert (shown.word, shown.kind, shown.n) == (word, kind, 16)
    score = re.search(r"written weights score (0\.\d+) in float32, where the best rule has (0\.\d+)", shown.evidence)
    if mechanism in ("delta", "gla"):
        assert float(score[1]) < float(score[2]) - 0.1
    if mechanism == "softmax":
        assert float(score[1]) > float(score[2]) - 0.005


def test_a_task_without_such_a_length_is_not_known():
    found = choose(131_072, must="needle,mqar", mechanisms="softmax,linear")
    assert {each.status for each in found.mechanisms} == {ChoiceStatus.OPEN}
    assert found.elsewhere == ("needle", "mqar")
    for mechanism in ("softmax", "linear"):
        for name in ("needle", "mqar"):
            shown = cell(found, mechanism, name)
            assert (shown.word, shown.n) == ("not known", None)
            assert f"{name} has no length near n=131,072" in shown.evidence
    assert task_at("needle", 101).parameters.n == 102  # there is no odd one
    assert task_at("needle", 4097) is None


def test_written_weights_are_scored_in_the_format_that_is_asked_for(monkeypatch):
    used = []
    score_model = choose_tasks.score_model

    def spied(model, task, samples):
        used.append(next(model.parameters()).dtype)
        return score_model(model, task, samples)

    monkeypatch.setattr(choose_tasks, "score_model", spied)
    shown = task_cell("needle", mechanism_named("softmax"), Budget.read({"n": 8, "dtype": "bfloat16"}))
    assert set(used) == {torch.bfloat16}
    assert "in bfloat16" in shown.evidence


def test_runs_of_training_count_at_their_length_size_and_format_alone(tmp_path):
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    works = [("first", trained("gla", seed)) for seed in (0, 1)]
    works += [("first", trained("gla", seed, width=32, heads=4)) for seed in (0, 1, 2)]
    sweep(WorkList("trained", tuple(works)), open_store(url, create=True), Inline())
    store = open_store(url)

    def asked(n, dtype):
        budget = Budget.read({"n": n, "dtype": dtype})
        return task_cell("needle", mechanism_named("gla"), budget, store)

    frame = sx.results(url, kind="training")
    scores = sorted(frame.filter(frame["width"] == 32)["score"])
    same = asked(8, "float32")
    assert (same.word, same.kind, same.n) == ("not learned", "trained", 8)
    assert f"0 of 3 runs solved it, with scores of {scores[0]:.4f} to {scores[-1]:.4f}" in same.evidence
    assert "2 stored runs are of another length, size or format (n=8; float32) and not counted" in same.evidence
    for n, dtype in ((10, "float32"), (8, "bfloat16"), (131_072, "float32")):
        other = asked(n, dtype)
        assert other.word == "not known", (n, dtype)
        assert "5 stored runs are of another length, size or format" in other.evidence


@pytest.mark.parametrize(
    ("given", "bytes_"), [("2GiB", 2**31), ("1.5MiB", 3 * 2**19), ("3kB", 3000), ("7 B", 7), (10, 10)]
)
def test_memory_has_units(given, bytes_):
    assert read_memory(given) == bytes_
    assert Budget.read({"n": 10, "memory": given}).memory == bytes_


@pytest.mark.parametrize("size", [1, 999, 1023, 1024, 1048575, 10**9, 2**40 - 1, 2**60])
def test_bytes_are_spelled_shortly_and_nearly(size):
    number, unit = format_bytes(size).replace(",", "").split()
    scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(unit)
    assert float(number) * scale == pytest.approx(size, rel=0.006)
    assert len(format_bytes(size)) <= 8


WRONG = {
    "": "choose needs n as well",
    "n=x": "n=x is not a number",
    "n=1": "n=1 is out of range",
    "n=9 dtype=int8": "dtype=int8 is not a number format; there are: bfloat16 (bf16)",
    "n=9 memory=2": "memory=2 has no unit; write for example memory=2GiB",
    "n=9 memory=2XB": "memory=2XB is not a size",
    "n=9 memory=much": "memory=much is not a size",
    "n=9 memory=0B": "memory=0B is out of range",
    "n=9 layers=0": "layers=0 is out of range",
    "n=9 kv_heads=5": "kv_heads=5 does not divide heads=12",
    "n=9 heads=8 kv_heads=16": "kv_heads=16 does not divide heads=8",
    "n=9 kv_heads=0": "kv_heads=0 is out of range",
    "n=9 tokens=4": "choose has no parameter tokens; it has: n, dtype, memory, layers, heads, kv",
    "n=9 --must spikes,nedle": "there is no construction or task nedle (did you mean needle?)",
    "n=9 --must spike,,cross": "must takes names of constructions and tasks",
    "n=9 --mechanisms sofmax": "there is no mechanism sofmax (did you mean softmax?)",
    "n=9 --out choice.txt": "let it end in one of .csv, .html, .json",
    "softmax n=9": "'softmax' is not of the form name=value",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said_in_one_line(words):
    with pytest.raises(UsageError, match=re.escape(WRONG[words])) as error:
        typed(["choose", *words.split()])
    assert "\n" not in str(error.value)


def test_the_command_prints_a_table_json_and_a_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ["choose", "n=20000", "memory=10MiB", "width=16", "--must", "critical", "--mechanisms", FEW]
    out = tmp_path / "choice.html"
    assert typed([*words, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "excluded: it keeps 176 MiB, more than 10 MiB" in " ".join(shown.split())
    assert typed([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["n"], printed["memory"]) == (20_000, 10 * 2**20)
    assert {each["mechanism"] for each in printed["mechanisms"]} == {*FEW.split(",")}
    text = out.read_text()
    for each in printed["mechanisms"]:
        for name, seen in each["sees"].items():
            assert f"<code>{seen['command']}</code>" in text, name
    assert "http" not in text.replace("http-equiv", "")


def test_a_strangers_mechanism_that_breaks_keeps_nobody_from_an_answer():
    def broken(q, k, v, causal=False):
        raise RuntimeError("not today")

    def mine(q, k, v, causal=False):
        return torch.softmax(q @ k.mT, -1) @ v

    found = choose(300, mechanisms=[mine, "softmax"], literal=False)
    assert len(found.mechanisms) == 2
    assert {each.kept_bytes for each in found.mechanisms} == {12 * (12 * 300 * 2 * 64 * 2 + 8)}
    assert "n = 300" in page(found)
    (alone,) = choose(300, mechanisms=[broken]).mechanisms
    assert not alone.has_results
    assert alone.operations_exponent is None
