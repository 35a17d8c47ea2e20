"""Plans: read in full, every mistake told with its line, cells that are the same whoever names them."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expectations import run
from separatrix.claims.paper.figures import BASE
from separatrix.claims.paper.sweeps import PARAMETERS
from separatrix.constructions import CONSTRUCTIONS
from separatrix.constructions.reference import read_with_defaults
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import MECHANISMS, examples, mechanism_named
from separatrix.mechanisms import load as load_module
from separatrix.mechanisms.custom import wrap
from separatrix.mechanisms.load import mechanism_from
from separatrix.sweeps import code as code_module
from separatrix.sweeps.code import code_version, find_sources
from separatrix.sweeps.plan import load_plan, read_plan
from separatrix.sweeps.plan_toml import PlanError, read_toml, split_statements
from separatrix.sweeps.sweep import find_plan, shipped_plans
from separatrix.sweeps.verdict_cells import DrawSettings, VerdictCell

HEAD = """
mechanisms = ["softmax", "linear"]
[parameters]
d = 102
m = 12
a0 = 0.01
a1 = 1.2
b = 0.2
c = 0.1
"""


def complaints(text: str) -> list[str]:
    with pytest.raises(PlanError) as caught:
        read_plan(text, "plan.toml")
    return caught.value.lines


def only(text: str) -> str:
    (line,) = complaints(text)
    return line


def test_a_byte_order_mark_is_no_part_of_a_plan(tmp_path: Path) -> None:
    text = '[[sweep]]\nconstruction = "spike"\nmechanisms = ["softmax"]\nparameters.n = [1000, 2000]\n'
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8-sig")
    assert (tmp_path / "plan.toml").read_bytes().startswith(b"\xef\xbb\xbf[[sweep]]")
    assert load_plan(tmp_path / "plan.toml").count == 2
    (tmp_path / "plan.toml").write_text(text.replace("parameters", "parameter"), encoding="utf-8-sig")
    with pytest.raises(PlanError, match=r"plan.toml, line 4: "):
        load_plan(tmp_path / "plan.toml")


def test_a_plan_is_a_product() -> None:
    plan = read_plan(
        HEAD + '[[sweep]]\nconstruction = "spike"\nengine = "dense"\nseeds = [3, 5]\n'
        'parameters = { n = [100, 200], a1 = "0.5:1.5:3" }'
    )
    cells = [cell for _, cell in plan]
    assert plan.count == len(cells) == 2 * 2 * 2 * 3
    assert len({cell.id for cell in cells}) == len(cells)
    assert {cell.mechanism for cell in cells} == {"softmax", "linear"}
    assert {cell.draws.seed for cell in cells if cell.draws} == {3, 5}
    assert {(cell.parameters["n"], cell.parameters["a1"]) for cell in cells} == {
        (n, a1) for n in ("100", "200") for a1 in ("0.5", "1", "1.5")
    }


def test_a_table_overrides_the_defaults() -> None:
    plan = read_plan(
        HEAD + 'n = 1000\n[[sweep]]\nconstruction = "spike"\nparameters.a1 = 0.7\n'
        '[[sweep]]\nconstruction = "spike"\nmechanisms = "linear"\ndelta = 0.05'
    )
    cells = [cell for _, cell in plan]
    assert [(cell.mechanism, cell.parameters["a1"], cell.delta) for cell in cells] == [
        ("softmax", "0.7", "0.01"), ("linear", "0.7", "0.01"), ("linear", "1.2", "0.05"),
    ]  # fmt: skip
    assert [part.name for part in plan.parts] == ["sweep 1", "sweep 2"]


def test_decimals_are_exact_as_they_are_written() -> None:
    text = HEAD.replace("a1 = 1.2", "a1 = 1.10000000000000000000000000000000001") + "n = 1e18\n"
    (cell, *_) = [cell for _, cell in read_plan(text + '[[sweep]]\nconstruction = "spike"')]
    assert cell.parameters["a1"] == "1.10000000000000000000000000000000001"
    assert cell.parameters["n"] == str(10**18)


def test_a_range_of_n_moves_to_admissible_values_and_a_list_does_not() -> None:
    table = '[[sweep]]\nconstruction = "spike"\nparameters = { n = %s, d = [12, 102] }'
    cells = [cell.parameters for _, cell in read_plan(HEAD + table % '"1e3:1e4:5:log"')]
    assert {(p["d"], p["n"]) for p in cells} == {
        ("12", "1000"), ("12", "1780"), ("12", "3160"), ("12", "5620"), ("12", "10000"),
        ("102", "1000"), ("102", "1800"), ("102", "3200"), ("102", "5600"), ("102", "10000"),
    }  # fmt: skip
    line = only(HEAD + table % "[1000, 1010]")
    assert "line 12: n=1010 is not a multiple of d-2=100" in line
    assert "25% of the points" in line


def test_mechanisms_with_grids_of_their_own_parameters() -> None:
    plan = read_plan(
        HEAD.replace('"linear"', '{ name = "power", beta = [2, 4] }, { name = "window", size = "2:8:4" }')
        + 'n = 1000\n[[sweep]]\nconstruction = "spike"'
    )
    assert [each.spelled for each in plan.parts[0].mechanisms] == [
        *("softmax", "power:beta=2", "power:beta=4"),
        *("window:size=2", "window:size=4", "window:size=6", "window:size=8"),
    ]


def test_words_can_be_lists_too() -> None:
    plan = read_plan(HEAD + 'n = 1000\nform = ["ones", "identity"]\n[[sweep]]\nconstruction = "spike"')
    assert {cell.parameters["form"] for _, cell in plan} == {"ones", "identity"}
    assert plan.count == 4


def test_all_constructions_and_all_mechanisms() -> None:
    plan = find_plan("atlas")
    kinds = {cell.construction for _, cell in plan}
    assert kinds == set(CONSTRUCTIONS)
    assert {cell.mechanism.partition(":")[0] for _, cell in plan} == set(MECHANISMS)
    assert plan.count == len(examples()) * sum(len(kind.variants) for kind in CONSTRUCTIONS.values())


def test_every_mistake_is_told_at_once_with_its_line() -> None:
    text = """name = "try"
mechanisms = ["softmax", "linar", "os:system", { name = "power", beta = "x" }]
enigne = "closed"
delta = 0.7

[[sweep]]
construction = "spike"
engine = "closd"
wrkers = 3
[sweep.parameters]
m = 12
n = [1000, "abc",
     true]
zz = 1

[[sweep]]
construction = "spke"
seeds = [-1]
draws = 0
dtype = "float8"
confidence = 2
"""
    lines = complaints(text)
    told = {int(line.split("line ")[1].split(":")[0]): line for line in lines}
    assert sorted(told) == [2, 3, 4, 8, 9, 12, 14, 17, 18, 19, 20, 21]
    assert sum("line 2:" in line for line in lines) == 3
    assert sum("line 12:" in line for line in lines) == 2
    assert "did you mean engine" in told[3]
    assert "did you mean closed" in told[8]
    assert "did you mean spike" in told[17]
    assert all(line.startswith("plan.toml, line ") for line in lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing to compute"),
        ("x = ", "line 1"),
        ("x = \ny = 1", "line 1"),
        ("a = 1\nb = [\n 1,\n x,\n]", "line 4"),
        ('[[sweep]]\nconstruction = "spike"\n[sweep]\n', "line 3"),
        ("sweep = 3", "sweep = 3 is not made of tables"),
        ("[[sweep]]\n", "no construction is named"),
        ('[[sweep]]\nconstruction = "all"\nmechanisms = []', "no mechanism is named"),
        ('[[sweep]]\nconstruction = 3\nmechanisms = "all"', "construction = 3 is not the name"),
        ('parameters = 3\n[[sweep]]\nconstruction = "all"\nmechanisms = "all"', "parameters = 3 is not a table"),
        ('[[sweep]]\nconstruction = "all"\nmechanisms = "all"\nparameters.n = 3', "leave out the parameters"),
        ('[[sweep]]\nconstruction = "all"\nmechanisms = "all"\nuntil_decided = "maybe"', "true or false"),
    ],
)
def test_complaints(text: str, said: str) -> None:
    assert any(said in line for line in complaints(text))


def test_what_a_table_does_not_give_is_that_of_the_reference_point() -> None:
    """And the cells are those of a plan that writes it out."""
    table = '[[sweep]]\nconstruction = "%s"\nmechanisms = ["softmax"]\n'
    few = read_plan(table % "spike" + 'parameters.n = "1e3:1e5:3:log"\n')
    rest = ("d", 102), ("m", 12), ("a0", 0.01), ("a1", 1.2), ("b", 0.2), ("c", 0.1)
    written = "".join(f"parameters.{name} = {value}\n" for name, value in rest)
    whole = read_plan(table % "spike" + 'parameters.n = "1e3:1e5:3:log"\n' + written)
    assert [cell.identity() for _, cell in few] == [cell.identity() for _, cell in whole]
    assert few.reference_defaults == {"sweep 1": {"spike": {name: str(value) for name, value in rest}}}
    assert whole.reference_defaults == {}
    for name, kind in CONSTRUCTIONS.items():
        ((_, cell),) = read_plan(table % name)
        assert cell.parameters == {
            key: str(value) for key, value in read_with_defaults(kind, {})[0].parameters.as_json().items()
        }


def test_an_n_that_was_not_given_is_moved_to_what_other_parameters_admit() -> None:
    plan = read_plan('[[sweep]]\nconstruction = "spike"\nmechanisms = ["softmax"]\nparameters.d = [9, 102]\n')
    assert [(cell.parameters["d"], cell.parameters["n"]) for _, cell in plan] == [("9", "1001"), ("102", "1000")]
    alone = read_plan('[[sweep]]\nconstruction = "spike"\nmechanisms = ["softmax"]\nparameters.d = 9\n')
    assert [cell.parameters["n"] for _, cell in alone] == ["1001"]


def test_what_does_not_go_with_the_reference_point_names_what_was_taken() -> None:
    said = only('[[sweep]]\nconstruction = "spike"\nmechanisms = ["softmax"]\nparameters.n = [1000, 1050]\n')
    assert "n=1050 is not a multiple of d-2=100" in said
    assert "not given, so taken from the reference point: d=102" in said


def test_empty_lists_and_nested_ones_are_told() -> None:
    table = '[[sweep]]\nconstruction = "spike"\nparameters.n = %s'
    assert "has no values" in only(HEAD + table % "[]")
    assert "give a value, a list" in complaints(HEAD + table % "[[1000]]")[0]
    assert "runs backwards" in only(HEAD + table % '"1e5:1e3:4"')


def test_tables_have_different_names() -> None:
    table = '[[sweep]]\nname = "x"\nconstruction = "spike"\nparameters.n = 1000\n'
    assert "two tables are named x" in only(HEAD + table + table)


def test_a_plan_that_is_too_large_is_refused() -> None:
    """Also if it has few points, and many seeds for each of them."""
    axes = 'n = 1000, a1 = "0.5:1.5:10000"'
    table = f'[[sweep]]\nconstruction = "spike"\nengine = "dense"\nseeds = "0:9999"\nparameters = {{ {axes} }}'
    with pytest.raises(UsageError, match="plan has 200,000,000 cells, more than 10,000,000"):
        read_plan(HEAD + table)


@pytest.mark.parametrize("words", ["", ":scale=2", ":seed=3"])
def test_a_plan_names_code_of_the_user_only_where_the_user_says_so(tmp_path: Path, words: str) -> None:
    (tmp_path / "mine_for_plans.py").write_text("raise SystemExit('imported')\n")
    text = f'mechanisms = ["mine_for_plans:attend{words}"]\n[[sweep]]\nconstruction = "all"'
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom separatrix.sweeps.plan import read_plan\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}read_plan({text!r})"], capture_output=True, text=True, check=False
    )
    assert f"allow it: `allow` mine_for_plans:attend{words}" in done.stderr
    assert "imported" not in done.stderr


def test_load_plan_refuses_what_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not a text"):
        load_plan(tmp_path / "binary.toml")
    with pytest.raises(UsageError, match="cannot read"):
        load_plan(tmp_path)
    with pytest.raises(UsageError, match=r"there is no plan papr \(did you mean paper\?\)"):
        find_plan("papr")
    with pytest.raises(UsageError, match="cannot read"):
        find_plan(str(tmp_path))
    (tmp_path / "deep.toml").write_text("x = " + "[" * 100_000)
    with pytest.raises(UsageError, match=r"nested too deeply|line"):
        load_plan(tmp_path / "deep.toml")


def test_the_command_line_tells_every_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "bad.toml"
    plan.write_text('mechanisms = ["sofmax"]\n[[sweep]]\nconstruction = "spik"\n')
    code, out, err = run(capsys, "sweep", str(plan), "--store", str(tmp_path / "r.db"))
    assert (code, out) == (2, "")
    assert [line.split(": ")[1].rpartition(", ")[2] for line in err.splitlines()] == ["line 1", "line 3"]
    assert [file.name for file in tmp_path.iterdir()] == ["bad.toml"]


def test_lines_of_every_kind_of_statement() -> None:
    text = '''# comment
name = "a"

description = """
[[sweep]]
x = 1
"""
[[sweep]]
parameters.n = 1
a = { b = 2, c = [
  3,
] }
[sweep.inner]
deep = 1
[[sweep]]
parameters = 3
[other]
"quoted key" = 1
'''
    lines = read_toml(text)[1]
    assert lines["name",] == 2
    assert lines["description",] == 4
    assert lines["sweep", 0] == 8
    assert lines["sweep", 0, "parameters", "n"] == 9
    assert lines["sweep", 0, "a", "c"] == 10
    assert lines["sweep", 0, "inner", "deep"] == 14
    assert lines["sweep", 1, "parameters"] == 16
    assert lines["other", "quoted key"] == 18


PIECES = st.sampled_from(
    [
        *("x", '"', "'", '"""', "'''", "\\", "#", "\n", "\r\n", "=", " = ", "[", "]", "[[", "]]", "{", "}", ",", "."),
        *("a = 1\n", 'b = "#"\n', "[t]\n", "[[u]]\n", "c = [\n", "d = { e = ']' }\n", 'f = """\n', '"""\n', "\u2028"),
    ]
)


@settings(max_examples=500)
@given(st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=100)))
def test_statements_are_what_the_parser_takes_them_for(text: str) -> None:
    """Of a text that TOML's own parser takes, it takes each statement, and no key is without a line."""
    found = list(split_statements(text))
    rows = text.split("\n")
    assert all(rows[each.line - 1].startswith(each.text.split("\n")[0]) for each in found)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    keys = [key for each in found for key in tomllib.loads(each.text)]
    assert set(data) <= set(keys)
    assert {path[0] for path in read_toml(text)[1]} == set(data)


def test_lines_break_where_toml_breaks_them() -> None:
    text = "# \u2028 \x85\na = '''\n]\n''''\r\nb = [\n'#', # ]\n]\nc = 1"
    assert read_toml(text)[1] == {("a",): 2, ("b",): 5, ("c",): 8}


def test_reading_is_linear_in_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser sees every character twice: in the whole text, and in its own statement."""
    parsed: list[int] = []
    real = tomllib.loads

    def counted(text: str, **more: Any) -> dict[str, Any]:
        parsed.append(len(text))
        return real(text, **more)

    monkeypatch.setattr(tomllib, "loads", counted)
    text = HEAD + 'n = 1000\n[[sweep]]\nconstruction = "spike"\nseeds = [\n' + "1,\n" * 3000 + "]\n"
    read_plan(text)
    assert len(text) < sum(parsed) <= 2 * len(text)


def test_installed_packages_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many unknown mechanisms a plan names: each look reads every package's metadata."""
    looked: list[str] = []
    monkeypatch.setattr(load_module, "entry_points", lambda group: looked.append(group) or EntryPoints())
    load_module._plugins.cache_clear()
    names = ", ".join(f'"sofmax{i}"' for i in range(200))
    assert len(complaints(f'mechanisms = [{names}]\n[[sweep]]\nconstruction = "all"')) == 51
    load_module._plugins.cache_clear()
    assert looked == ["separatrix.mechanisms"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1" * 5001, "line 11: a number has more than 4000 digits"),
        ("0x" + "f" * 5001, "line 11: a number has more than 4000 digits"),
        ("1e9999999999999999999", "line 11: a number has more than 4000 digits"),
        ("1e99999", "line 11: n=1E+99999 has more than 4000 digits"),
        ("0." + "1" * 5001, "has more than 4000 digits"),
        ("[" * 40 + "]" * 40, "line 11: this is nested more than 30 deep"),
        ("{" + ".".join("a" * 40) + " = 1}", "line 11: this is nested more than 30 deep"),
        ("nan", "line 11: n=NaN is not a finite number"),
    ],
)
def test_numbers_and_keys_beyond_all_bounds_are_told_with_their_line(written: str, said: str) -> None:
    line = complaints(HEAD + f'[[sweep]]\nparameters.n = {written}\nconstruction = "spike"')[0]
    assert said in line
    assert len(line) < 2500


def test_a_key_nested_without_end() -> None:
    assert "line 2: this is nested more than 30 deep" in only("\n" + ".".join("a" * 3000) + " = 1")
    assert "line 1: this is nested more than 30 deep" in only("[" + ".".join("a" * 3000) + "]")


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (
            'parameters = { n = 1000, a1 = "0:1:1000000", c = "0:1:1000000" }',
            "line 12: this makes 1,000,000,000,000 points, more than 10,000,000",
        ),
        ('engine = "dense"\nseeds = "0:999999999999"\nparameters.n = 1000', "seeds = 0:999999999999 is"),
    ],
)
def test_points_are_counted_before_any_is_made(table: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = "separatrix.sweeps.verdict_table.read_values"
    monkeypatch.setattr(make, lambda *_: pytest.fail("points were made")) if "points" in complaint else None
    with pytest.raises(UsageError, match=complaint):
        read_plan(f'{HEAD}[[sweep]]\nconstruction = "spike"\n{table}')


@pytest.mark.parametrize(
    "table",
    [
        f"construction = 'spike'\nparameters = {{ a0 = {[0] * 3000}, a1 = {[1] * 3000}, n = 1000 }}",
        f"construction = {['spike'] * 3000}\nparameters = {{ n = {[1000] * 3000} }}",
        f"construction = 'spike'\nparameters = {{ n = 1000, form = {['ones'] * 3000} }}",
    ],
)
def test_values_that_are_repeated_count_once(table: str) -> None:
    assert read_plan(f"{HEAD}[[sweep]]\n{table}").count == 2


def test_mechanisms_are_counted_before_any_is_made() -> None:
    many = '{ name = "power", beta = "1:2:1000000" }'
    with pytest.raises(UsageError, match="line 2: this makes 1,000,000 mechanisms, more than 100,000"):
        read_plan(HEAD.replace('"linear"', many) + 'n = 1000\n[[sweep]]\nconstruction = "spike"')


CELL = VerdictCell("spike", "softmax", {"n": "1000", "a1": "1.2"}, "closed", "0.01", None, "c0de")


def test_an_identity_is_the_same_on_every_machine_and_day() -> None:
    asked = '["spike","softmax",{"a1":"1.2","n":"1000"},"closed","0.01",null]'
    spelled = f'[1,"verdict",{asked},"c0de"]'
    assert CELL.id == hashlib.sha256(spelled.encode()).hexdigest()[:32] == "84dfe5ed24625fc7671770df3004f25d"


@pytest.mark.parametrize(
    "changed",
    [
        {"construction": "cross"},
        {"mechanism": "linear"},
        {"parameters": {"n": "1000", "a1": "1.3"}},
        {"engine": "auto"},
        {"delta": "0.02"},
        {"draws": DrawSettings(400, 0, 0.95, "float64", False)},
        {"draws": DrawSettings(400, 1, 0.95, "float64", False)},
        {"draws": DrawSettings(400, 0, 0.95, "float32", False)},
        {"draws": DrawSettings(400, 0, 0.95, "float64", True)},
        {"code": "c0df"},
    ],
)
def test_whatever_determines_a_result_is_in_its_identity(changed: dict[str, object]) -> None:
    fresh = {name: value for name, value in vars(CELL).items() if name != "id"}
    assert VerdictCell(**{**fresh, **changed}).id != CELL.id


def test_spelling_and_order_do_not_matter() -> None:
    table = '[[sweep]]\nconstruction = "spike"\nparameters.n = %s'
    one = {cell.id for _, cell in read_plan(HEAD + table % "1e3")}
    other = {cell.id for _, cell in read_plan(HEAD.replace("a1 = 1.2", 'a1 = "12/10"') + table % "[1000]")}
    assert one == other


def test_seeds_make_no_new_cells_of_what_draws_nothing() -> None:
    table = '[[sweep]]\nconstruction = "spike"\nengine = "%s"\nseeds = "0:9"\nparameters.n = 1000'
    assert read_plan(HEAD + table % "closed").count == 2
    assert read_plan(HEAD + table % "certified").count == 2
    assert read_plan(HEAD + table % "dense").count == 20


def test_each_cell_may_have_a_seed_of_its_own() -> None:
    table = '[[sweep]]\nconstruction = "spike"\nengine = "%s"\nseeds = "5:"\nparameters.n = [1000, 2000]'
    plan = read_plan(HEAD + table % "dense")
    cells = [cell for _, cell in plan]
    assert [cell.draws.seed for cell in cells if cell.draws is not None] == [5, 6, 7, 8]
    assert plan.count == len(cells) == 4
    assert read_plan(HEAD + table % "closed").count == 4
    for wrong in ("x", "-1", str(2**63), ""):
        assert "seeds" in only(HEAD + (table % "dense").replace('"5:"', f'"{wrong}:"'))


def test_the_same_identity_in_another_process() -> None:
    script = "from separatrix.sweeps.sweep import find_plan; print(next(iter(find_plan('atlas')))[1].id)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == next(iter(find_plan("atlas")))[1].id


def test_a_folder_does_not_hide_a_plan_that_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "paper").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_plan("paper").name == "paper"


@pytest.mark.parametrize(("folder", "local"), [("mine", True), ("site-packages", False), ("dist-packages", False)])
def test_packages_of_another_environment_are_installed(
    folder: str, local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / f"helper_in_{folder[:4]}.py").write_text("x = 1")
    monkeypatch.syspath_prepend(tmp_path / folder)
    assert code_module._is_installed(f"helper_in_{folder[:4]}") is not local


def clear_caches() -> None:
    """Read sources again, as a new process does."""
    code_module.hash_code.cache_clear()
    code_module._read_source.cache_clear()


@pytest.fixture
def fresh_sources() -> Iterator[None]:
    clear_caches()
    yield
    clear_caches()


@pytest.mark.usefixtures("fresh_sources")
def test_the_code_of_a_mechanism_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changing one mechanism changes its code, and that of no other."""
    softmax, gla = mechanism_named("softmax"), mechanism_named("gla")
    before = code_version(Spike, softmax), code_version(Spike, gla)
    find_file = code_module._find_own_file
    changed_file = tmp_path / "gla.py"
    changed_file.write_text("changed = True\n")

    def find_changed_file(name: str) -> Path | None:
        return changed_file if name == "mechanisms.recurrent.gla" else find_file(name)

    monkeypatch.setattr(code_module, "_find_own_file", find_changed_file)
    clear_caches()
    assert code_version(Spike, softmax) == before[0]
    assert code_version(Spike, gla) != before[1]


@pytest.mark.usefixtures("fresh_sources")
def test_the_code_includes_the_version_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_version(Spike, mechanism_named("softmax"))
    monkeypatch.setattr(code_module, "version", lambda _: "999")
    clear_caches()
    assert code_version(Spike, mechanism_named("softmax")) != before


@pytest.mark.usefixtures("fresh_sources")
def test_the_code_of_a_users_own_mechanism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays that of the code that this process has loaded; a new process has that of the new file."""
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "own_of_plans.py"
    file.write_text("def attend(q, k, v):\n    return v\n")
    mechanism = mechanism_from("own_of_plans:attend")
    before = code_version(Spike, mechanism)
    file.write_text("def attend(q, k, v):\n    return v + 1\n")
    assert code_version(Spike, mechanism) == before
    clear_caches()
    assert code_version(Spike, mechanism) != before
    file.write_text("def attend(q, k, v):\n    return v\n")
    clear_caches()
    assert code_version(Spike, mechanism) == before


@pytest.mark.usefixtures("fresh_sources")
def test_line_ends_are_not_in_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout on Windows has the same code."""
    monkeypatch.syspath_prepend(str(tmp_path))
    digests = set()
    for end in (b"\n", b"\r\n"):
        (tmp_path / "ends_of_plans.py").write_bytes(end.join((b"def attend(q, k, v):", b"    return v", b"")))
        clear_caches()
        digests.add(find_sources(["ends_of_plans"])["ends_of_plans"])
    assert len(digests) == 1


@pytest.mark.usefixtures("fresh_sources")
@pytest.mark.parametrize("changed", ["scale.py", "beside_of_plans.py", "package_of_plans/__init__.py"])
def test_what_a_users_own_mechanism_imports_is_in_it(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"package_of_plans_{changed[0]}"
    folder = tmp_path / name
    folder.mkdir()
    (tmp_path / f"beside_{name}.py").write_text("ONE = 1\n")
    (folder / "__init__.py").write_text("")
    (folder / "scale.py").write_text("TWO = 2\n")
    (folder / "own.py").write_text(
        f"import math\nfrom .scale import TWO\nfrom beside_{name} import ONE\n"
        "def attend(q, k, v):\n    return ONE * TWO * math.pi * v\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    mechanism = mechanism_from(f"{name}.own:attend")
    before = code_version(Spike, mechanism)
    files = {"scale.py": folder / "scale.py", "beside_of_plans.py": tmp_path / f"beside_{name}.py"}
    file = files.get(changed, folder / "__init__.py")
    file.write_text(file.read_text() + "THREE = 3\n")
    clear_caches()
    assert code_version(Spike, mechanism) != before
    sources = find_sources({*code_module.VERDICT_MODULES, f"{name}.own"})
    assert not {"math", "torch"} & set(sources)


@pytest.mark.parametrize(
    ("statement", "modules"),
    [
        ("import a", ["a"]),
        ("import a.b as x, c", ["a.b", "c"]),
        ("from a import b", ["a"]),
        ("from .a import (\n    b,  # why\n    c as d,\n)", [".a"]),
        ("    from . import a", ["."]),
        ("if x:\n    import a  # why", ["a"]),
        ("\timport a; b", ["a"]),
        ("x = 'import a'", []),
        ("# import a", []),
        ("important = 1", []),
    ],
)
def test_import_statements_are_recognised(statement: str, modules: list[str]) -> None:
    assert [module for module, _ in code_module._find_imports(f"x = 0\n{statement}\ny = 1\n")] == modules


def test_imports_are_those_of_the_syntax_tree() -> None:
    """In all of our own sources, which have every form of import statement."""
    for file in sorted(code_module.SOURCES.rglob("*.py")):
        text = file.read_text()
        expected = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                expected |= {(alias.name, None) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                expected |= {(module, alias.name) for alias in node.names}
        found = {
            pair
            for module, names in code_module._find_imports(text)
            for pair in ([(module, name) for name in names] or [(module, None)])
        }
        assert expected <= found, file


@pytest.mark.usefixtures("fresh_sources")
def test_the_code_of_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism of another package, registered under a name without its module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "plugin_of_plans.py").write_text("def attend(q, k, v):\n    return v\n")
    mechanism = wrap(import_module("plugin_of_plans").attend, "registered")
    before = code_version(Spike, mechanism)
    (tmp_path / "plugin_of_plans.py").write_text("def attend(q, k, v):\n    return 2 * v\n")
    clear_caches()
    assert code_version(Spike, mechanism) != before


def test_the_sources_behind_a_cell_are_all_there_and_no_others() -> None:
    sources = find_sources({*code_module.VERDICT_MODULES, "separatrix.mechanisms.hybrid.window_linear"})
    assert {
        "separatrix.exact.engines.closed",
        "separatrix.exact.engines.sampling",
        "separatrix.core.numbers.exact",
    } <= set(sources)
    assert "separatrix.mechanisms.features.elu" in sources
    assert not {name for name in sources if name.startswith(("separatrix.pages", "separatrix.sweeps.store"))}
    assert "separatrix.mechanisms.recurrent.gla" not in sources


def test_the_shipped_plan_is_what_reproduce_computes() -> None:
    assert list(shipped_plans()) == ["atlas", "benchmarks-large", "benchmarks", "paper"]
    plan = find_plan("paper")
    taken: dict[tuple[str, str], set[Fraction]] = {}
    for part, cell in plan:
        moved = part.partition(",")[0]
        rest = {name: Fraction(cell.parameters[name]) for name in BASE if name != moved}
        assert rest == {name: Fraction(value) for name, value in BASE.items() if name != moved}
        taken.setdefault((moved, cell.engine), set()).add(Fraction(cell.parameters[moved]))
    assert set(taken) == {(name, engine) for name in PARAMETERS for engine in ("closed", "dense")}
    assert all(taken[name, "dense"] <= taken[name, "closed"] for name in PARAMETERS)
    seeds = [cell.draws.seed for _, cell in plan if cell.draws is not None]
    assert sorted(seeds) == list(range(len(seeds)))


@given(st.text(max_size=300))
def test_any_text_is_a_plan_or_refused_in_lines(text: str) -> None:
    found: list[str] = []
    try:
        read_plan(text)
    except UsageError as error:
        found = error.lines
    assert found
    assert all(line.strip() for line in found)


def test_a_name_has_an_end() -> None:
    plan = "name = '{}'\nconstruction = 'spike'\nmechanisms = ['softmax']\n[[sweep]]\n"
    assert read_plan(plan.format("x" * 200)).name == "x" * 200
    with pytest.raises(PlanError, match="has 20,000 characters, more than 200"):
        read_plan(plan.format("x" * 20_000))
