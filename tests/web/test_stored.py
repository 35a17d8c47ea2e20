"""The store on the page: what the commands print of it, as it grows; read alone; its texts are data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from command_server import run
from documents import require_document
from explorer import Explorer, serving
from postgres_server import PASSWORD, program
from postgres_server import running as postgres
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.run import run as run_plan
from separatrix.sweeps.store import open_store
from separatrix.sweeps.store.schema import cells, sweeps
from stored import replace_row
from sweep_tools import HEAD, SMALL, Instant

MARKUP = '<img src=x onerror="window.owned=1">'
PLANE = HEAD + '[[sweep]]\nname = "plane"\nparameters = { n = "1e2:1e9:5:log", a1 = "0.5:1.5:5" }\n'


def fill(url: str) -> None:
    """Two sweeps, of which the second asks for a plane."""
    store = open_store(url, create=True)
    for plan in (SMALL, PLANE):
        run_plan(read_plan(plan), store, Instant())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("explored")
    fill(url_in(made))
    return made


@pytest.fixture(scope="module")
def shown(folder: Path) -> Iterator[Explorer]:
    with serving(url_in(folder)) as found:
        yield found


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder}/results.db"


def printed(folder: Path, *words: str) -> Any:
    return json.loads(run(*words, "--store", url_in(folder), "--json").stdout)


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "results.db").read_bytes()).hexdigest()


def test_sweeps_are_those_that_are_listed(shown: Explorer, folder: Path) -> None:
    found = shown.get("/store")
    listed = printed(folder, "list", "sweeps")
    assert [{name: each[name] for name in listed[0]} for each in found["sweeps"]] == listed
    assert found["store"] == str(folder / "results.db")
    assert (found["running"], found["warning"]) == (0, None)
    assert all(each["stored"] == each["planned"] for each in found["sweeps"])
    assert found["sweeps"][0]["planned"] == read_plan(SMALL).count


@pytest.mark.parametrize(
    "words", [(), ("mechanism=softmax", "n=1e3:1e6"), ("verdict=blind", "--sweep", "1"), ("seed=1",)]
)
def test_a_page_of_cells_is_what_results_prints(shown: Explorer, folder: Path, words: tuple[str, ...]) -> None:
    query = "&".join(words).replace("--sweep&", "--sweep=")
    found = shown.get(f"/results?{query}&--limit=1000".replace("?&", "?"))
    assert found["next"] is None
    assert found["cells"] == printed(folder, "results", *words)
    counted = shown.get(f"/results/counts?{query}")
    assert counted["cells"] == len({each["id"] for each in found["cells"]})
    assert sum(counted["came"].values()) == counted["cells"]


def test_pages_go_on_where_the_last_one_ended(shown: Explorer, folder: Path) -> None:
    seen, after = list[str](), ""
    for _ in range(30):
        page = shown.get(f"/results?--sweep=1&--limit=10{after}")
        seen += [f"{each['id']} {each['part']}" for each in page["cells"]]
        if page["next"] is None:
            break
        after = f"&--after={page['next']}"
    wanted = printed(folder, "results", "--sweep", "1")
    assert sorted(seen) == sorted(f"{each['id']} {each['part']}" for each in wanted)


def test_what_is_wrong_is_told_in_the_words_of_the_command(shown: Explorer, folder: Path) -> None:
    for query, words in (
        ("mechanism=sofmax", ("results", "mechanism=sofmax")),
        ("n=9:1", ("results", "n=9:1")),
        ("--sweep=nine", ("results", "--sweep", "nine")),
        ("verdict=blid", ("results", "verdict=blid")),
    ):
        said = run(*words, "--store", url_in(folder)).stderr.strip()
        assert said == f"separatrix: {shown.refusal(f'/results?{query}')['error']}"
    assert shown.refusal("/results?n=9:1")["field"] == "n"
    assert shown.refusal("/results?--limit=1e9")["field"] == "--limit"


def test_two_sweeps_are_compared_as_by_the_command(shown: Explorer, folder: Path) -> None:
    found = shown.get("/compare/1/2")
    assert require_document("compare", found) == printed(folder, "compare", "1", "2")
    assert "small and 2 are both sweep 2" in shown.refusal("/compare/small/2")["error"]


def test_figures_have_the_cells_of_the_sweep(shown: Explorer, folder: Path) -> None:
    wanted = {
        (each["mechanism"], each["parameters"]["n"]): each["distinguish"]
        for each in printed(folder, "results", "--sweep", "1")
        if each["part"] == "n"
    }
    curves = shown.get("/results/figures?--sweep=1")["curves"]
    (curve,) = [each for each in curves if each["part"] == "n"]
    drawn = {
        (line["mechanism"], round(x)): p for line in curve["lines"] for x, p in zip(line["x"], line["p"], strict=True)
    }
    assert drawn == wanted
    assert (curve["x"], curve["log"]) == ("n", True)
    maps = shown.get("/results/figures?--sweep=2")["maps"]
    known = {
        (each["mechanism"], float(each["parameters"]["a1"]), each["parameters"]["n"]): each["distinguish"]
        for each in printed(folder, "results", "--sweep", "2")
    }
    assert [each["mechanism"] for each in maps] == ["softmax", "linear"]
    for each in maps:
        x, y = each["axes"]
        assert (x["name"], y["name"]) == ("a1", "n")
        for j, n in enumerate(y["at"]):
            for i, a1 in enumerate(x["at"]):
                assert each["values"][j][i] == known[each["mechanism"], a1, round(n)]


def test_figures_have_the_cells_that_meet_the_conditions(shown: Explorer) -> None:
    found = shown.get("/results/figures?mechanism=softmax&--sweep=1")
    assert {line["mechanism"] for curve in found["curves"] for line in curve["lines"]} == {"softmax"}
    maps = shown.get("/results/figures?mechanism=linear&--sweep=2")["maps"]
    assert [each["mechanism"] for each in maps] == ["linear"]
    nothing = shown.get("/results/figures?n=3&--sweep=1")
    assert (nothing["curves"], nothing["maps"], nothing["unfinished"]) == ([], [], 0)
    for query in ("n=zzz", "bogus=3", "mechanism=sofmax"):
        assert shown.refusal(f"/results/figures?{query}") == shown.refusal(f"/results?{query}")


LEARN = """
name = "both"
[[sweep]]
construction = "spike"
mechanisms = ["softmax", "linear"]
parameters.n = "1e3:1e6:4:log"
[[learn]]
task = "needle"
mechanisms = ["softmax"]
parameters = { n = 8 }
setting = { width = 8, steps = 4, every = 2, batch = 8, validation = 64 }
rates = [0.01]
seeds = "0:1"
"""


def test_training_runs_of_a_plan_are_finished_cells_that_were_not_tested(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(LEARN)
    url = url_in(tmp_path)
    assert run("sweep", "plan.toml", "--store", url, "--workers", "1", cwd=tmp_path).returncode == 0
    for width in ("80", "50"):
        seen = run("results", "--kind", "training", "--store", url, columns=width).stdout
        assert "…" not in seen
        assert ("no room for" in seen) == (width == "50")
        assert max(map(len, seen.splitlines())) <= int(width)
    with serving(url) as found:
        (sweep,) = found.get("/store")["sweeps"]
        assert (sweep["stored"], sweep["planned"]) == (10, 10)
        assert found.get("/results/figures?--sweep=1")["unfinished"] == 0
        assert found.get("/about")["store"] == url
        needle = found.get("/learn/needle")
        assert needle["found"] == []
        assert "softmax on needle n=8" in needle["waiting"][0]
        assert "2 runs are stored, and were not scored on the test samples" in needle["waiting"][0]
        with open_store(url).writing() as connection:
            connection.execute(text("DELETE FROM cells WHERE kind = 'training' AND seed = 0"))
        assert found.get("/results/figures?--sweep=1")["unfinished"] == 1


def test_where_no_sweep_is_intact_it_is_not_said_that_none_is_stored(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "results.db").write_bytes((folder / "results.db").read_bytes())
    with open_store(url_in(tmp_path)).writing() as connection:
        connection.execute(text("UPDATE sweeps SET name = 'other'"))
    said = run("list", "sweeps", cwd=tmp_path)
    assert said.stdout == "no sweep is intact\n"
    assert "separatrix store check" in said.stderr


def test_looking_changes_nothing(shown: Explorer, folder: Path) -> None:
    before = digest(folder)
    for path in ("/store", "/results?--sweep=1", "/results/counts", "/results/figures?--sweep=2", "/compare/1/2"):
        shown.get(path)
    assert digest(folder) == before
    assert sorted(each.name for each in folder.iterdir()) == ["results.db"]


def test_a_store_that_grows_is_seen_growing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/grows.db"
    open_store(url, create=True)
    with serving(url) as found:
        assert found.get("/store")["sweeps"] == []
        assert found.get("/results")["cells"] == []
        fill(url)
        assert [each["name"] for each in found.get("/store")["sweeps"]] == ["small", "small"]
        assert len(found.get("/results?--limit=5")["cells"]) == 5


def test_without_a_store_and_where_there_is_none_the_page_says_so_and_makes_none(
    explorer: Explorer, tmp_path: Path
) -> None:
    for path in ("/store", "/results", "/results/counts", "/results/figures", "/compare/1/2"):
        assert "separatrix explore --store sqlite:///results.db" in explorer.refusal(path)["error"]
    with serving(url_in(tmp_path)) as found:
        said = run("results", "--store", url_in(tmp_path)).stderr.strip()
        assert said == f"separatrix: {found.refusal('/store')['error']}"
        assert said == f"separatrix: {found.get('/learn')['note']}"
        assert said == f"separatrix: {found.get('/learn/parity')['waiting'][0]}"
    assert list(tmp_path.iterdir()) == []


def altered(folder: Path, **changed: Any) -> None:
    """Cells and a sweep that say something else, with the right checksums."""
    store = open_store(url_in(folder))
    with store.writing() as connection:
        for each in connection.execute(select(cells).limit(5)).mappings().all():
            new = {**each, **changed, "parameters": {**each["parameters"], MARKUP: MARKUP}}
            replace_row(store, connection, cells, new)
        sweep = connection.execute(select(sweeps).where(sweeps.c.id == 1)).mappings().one()
        replace_row(store, connection, sweeps, {**sweep, "name": MARKUP, "plan": MARKUP})


def test_texts_of_a_store_are_data(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "results.db").write_bytes((folder / "results.db").read_bytes())
    altered(tmp_path, mechanism=MARKUP, message=MARKUP, evidence=MARKUP)
    with serving(url_in(tmp_path)) as found:
        assert found.get("/store")["sweeps"][0]["name"] == MARKUP
        rows = found.get("/results?--limit=1000")["cells"]
        assert sum(each["mechanism"] == MARKUP for each in rows) == 5
        reply = found.send("/api/v1/results/figures?--sweep=1")
        assert reply.headers["content-type"] == "application/json"
        assert reply.json()["plan"] == MARKUP


def test_what_is_damaged_is_told_and_the_rest_is_shown(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "results.db").write_bytes((folder / "results.db").read_bytes())
    with open_store(url_in(tmp_path)).writing() as connection:
        connection.execute(text("UPDATE cells SET distinguish = 0.25 WHERE rowid IN (2, 3)"))
    with serving(url_in(tmp_path)) as found:
        page = found.get("/results?--limit=1000")
        said = run("results", "--store", url_in(tmp_path))
        assert said.returncode == 1
        assert said.stderr.strip() == f"separatrix: warning: {page['warning']}"
        assert "2 cells are altered" in page["warning"]
        assert len(page["cells"]) == len(printed(tmp_path, "results"))


@pytest.mark.exhaustive
@pytest.mark.skipif(
    program("initdb") is None, reason="PostgreSQL is not installed (Debian: apt-get install postgresql)"
)
def test_a_store_in_postgresql_is_shown_by_the_same_requests_without_its_password() -> None:
    with postgres() as server:
        url = server.schema("explored")
        fill(url)
        with serving(url) as found:
            contents = found.get("/store")
            assert [each["id"] for each in contents["sweeps"]] == [1, 2]
            whole = found.get("/results?--sweep=1&--limit=1000")["cells"]
            first = found.get("/results?--sweep=1&--limit=10")
            second = found.get(f"/results?--sweep=1&--limit=1000&--after={first['next']}")
            named = [f"{each['id']} {each['part']}" for page in (first, second) for each in page["cells"]]
            assert sorted(named) == sorted(f"{each['id']} {each['part']}" for each in whole)
            assert len(found.get("/results/figures?--sweep=2")["maps"]) == 2
            assert found.get("/compare/1/2")["only_one"] > 0
            server.stop()
            gone = found.refusal("/store")
            server.start()
            about = found.get("/about")
            assert about["store"].startswith("postgresql")
            assert PASSWORD not in json.dumps([contents, gone, about])
            assert found.get("/store")["cells"] == contents["cells"]
