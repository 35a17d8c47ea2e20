"""What a store does in whatever database; modules give fixtures of addresses of empty ones: `url` for every
test, `shared_url` for all tests of the module.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sqlalchemy import JSON, Column, Text, cast, select, text, type_coerce
from sqlalchemy.exc import DBAPIError

import stored
from separatrix.core.parameters import UsageError
from separatrix.sweeps.store import (
    CellStatus,
    DamageWarning,
    Environment,
    Store,
    StoreError,
    frame,
    open_store,
    read_filter,
    results,
    select_cells,
)
from separatrix.sweeps.store.leases import Leases
from separatrix.sweeps.store.maintenance import backup_store, check_store, repair_store
from separatrix.sweeps.store.opening import require_complete
from separatrix.sweeps.store.schema import cells, checksum
from separatrix.sweeps.store.sweep_list import find_sweep, list_sweeps, read_progress
from stored import POINT, contents, failed, row

PROGRAM = [sys.executable, str(Path(stored.__file__))]
HUGE = "1" + "0" * 400


class Verdict(StrEnum):
    BLIND = "blind"


def found(store: Store, **conditions: object) -> set[str]:
    """The first probabilities of the cells that are found: they name the cells here."""
    return {p0.partition("/")[0] for p0 in results(store, **conditions)["p0"]}


def cast_json(column: Column[Any], store: Store) -> Any:
    """A column as it is stored; JSON as text."""
    if not isinstance(column.type, JSON):
        return column
    return cast(column, Text) if store.dialect == "postgresql" else type_coerce(column, Text)


class StoreBattery:
    """Tests of `Store`, `frame` and `results`."""

    @pytest.fixture
    def store(self, url: str) -> Store:
        return open_store(url, create=True)

    @pytest.fixture(scope="class")
    @classmethod
    def varied(cls, shared_url: str) -> Store:
        """Cells that differ in what is asked for below, named by their numbers; tests only read them."""
        store = open_store(shared_url, create=True)
        seeded = {"draws": 100, "confidence": 0.99, "dtype": "float64"}
        store.add(
            [
                row(0, {"a1": "1/3", "n": "1000"}, mechanism="softmax"),
                row(1, {"a1": "0.3", "n": "1001"}, mechanism="power:beta=2"),
                row(2, {"a1": "0.30000000000000000001", "n": "2000"}, mechanism="power:beta=2,gamma=3"),
                row(3, {"a1": "-0.5", "n": "9007199254740992"}, mechanism="powerful"),
                row(4, {"a1": HUGE, "n": "9007199254740993"}, seed=2**60 + 1, **seeded),
                row(5, {"a1": "0", "n": HUGE, "form": "twos"}, seed=3, **seeded),
                row(6, {"a1": "1", "n": HUGE[:-1] + "1"}, {"verdict": "partial"}, seed=4, **seeded),
            ]
        )
        return store

    def test_pages_hold_every_cell_once_and_those_of_several_parts_whole(self, store: Store) -> None:
        store.add(map(row, range(25)))
        number = store.begin_sweep("key", "name", "plan")
        ids = [row(i)[0] for i in range(25)]
        store.add_members(number, [(cell, part) for cell in ids for part in ("one", "other")])
        for sweep, each in ((None, 25), (number, 50)):
            seen, after, sizes = list[tuple[str, str | None]](), "", list[int]()
            while after is not None:
                with select_cells(store, read_filter({}), sweep, limit=7, after=after) as page:
                    rows = [found for frame_ in page.frames() for found in frame_.iter_rows(named=True)]
                    seen += [(found["id"], found.get("part")) for found in rows]
                    after = page.last
                    sizes.append(page.count)
            assert len(seen) == len(set(seen)) == each
            assert {cell for cell, _ in seen} == set(ids)
            assert max(sizes) <= 8
        with select_cells(store, read_filter({"verdict": "partial"}), number, limit=7, after="") as page:
            assert (page.count, page.last) == (0, None)

    def test_how_far_sweeps_are_is_counted(self, store: Store) -> None:
        store.add([*map(row, range(5)), failed(5)])
        number = store.begin_sweep("key", "name", "plan")
        store.add_members(number, [(row(i)[0], part) for i in range(8) for part in ("one", "other")])
        empty = store.begin_sweep("another", "empty", "plan")
        known = read_progress(store)
        assert (known.cells, known.kinds, known.running) == (6, {"verdict": 6}, 0)
        assert not known.damage
        first, second = known.sweeps
        assert (first.id, first.cells, first.planned, first.stored) == (number, 6, 16, 12)
        assert first.not_done == {"failed": 2}
        assert (second.id, second.planned, second.stored, second.not_done) == (empty, 0, 0, {})
        leases = Leases(store)
        leases.acquire([row(6)[0]], 1)
        assert read_progress(store).running == 1
        leases.release()
        assert read_progress(store).running == 0

    def test_a_store_that_is_opened_to_be_read_refuses_to_be_changed(self, url: str, store: Store) -> None:
        store.add([row(0)])
        before = contents(store)
        reading = open_store(url, read_only=True)
        assert contents(reading) == before
        with pytest.raises(StoreError, match=r"^the store [^\n]*$"):
            reading.add([row(1)])
        with pytest.raises(StoreError, match=r"^the store [^\n]*$"):
            reading.begin_sweep("key", "name", "plan")
        for statement in ("DELETE FROM cells", "DROP TABLE cells", "CREATE TABLE more (x INTEGER)"):
            with pytest.raises(DBAPIError), reading.engine.begin() as connection:
                connection.execute(text(statement))
        assert contents(store) == before
        store.add([row(1)])
        assert len(contents(reading)) == 2

    def test_what_is_added_is_there(self, url: str, store: Store) -> None:
        store.add(map(row, range(50)))
        assert store.find_statuses([row(i)[0] for i in range(60)]) == {row(i)[0]: CellStatus.DONE for i in range(50)}
        assert len(contents(store)) == 50
        assert contents(open_store(url)) == contents(store)

    def test_adding_again_changes_nothing(self, store: Store) -> None:
        store.add([row(0), failed(1)])
        before = contents(store)
        store.add([row(0, None, {"distinguish": 0.5}), failed(0)])
        assert contents(store) == before

    def test_a_failed_cell_is_replaced(self, store: Store) -> None:
        store.add([failed(1)])
        assert frame(store)["message"].to_list() == ["out of luck"]
        elsewhere = Environment("elsewhere", {"python": "3.12"})
        store.add([row(1, None, {"environment": elsewhere})])
        assert frame(store).select("status", "message", "host").rows() == [("done", None, "elsewhere")]

    def test_the_same_cell_twice_in_one_batch(self, store: Store) -> None:
        store.add([failed(1), row(1), row(1, None, {"distinguish": 0.5})])
        assert frame(store).select("status", "distinguish").rows() == [("done", 1 / 7)]

    def test_nothing_of_a_batch_is_kept_if_one_cell_cannot_be(self, store: Store) -> None:
        store.add([row(0)])
        with pytest.raises(StoreError, match=r"^the store [^\n]*$"):
            store.add([row(1), row(2, construction=None), row(3)])
        assert store.find_statuses([row(i)[0] for i in range(4)]) == {row(0)[0]: CellStatus.DONE}
        store.add([row(1)])
        assert len(contents(store)) == 2

    def test_numbers_and_texts_come_back_to_the_last_bit(self, store: Store) -> None:
        odd = {"distinguish": 0.1 + 0.2, "low": 5e-324, "high": 1.7976931348623157e308, "margin": -0.0}
        odd |= {"bits": float("nan"), "message": "half \ud800 a\0letter ' \" é ∞", "seconds": 0}
        store.add([row(0, None, odd, draws=10**7)])
        kept = frame(store).row(0, named=True)
        assert [kept[name] for name in ("distinguish", "low", "high")] == [0.1 + 0.2, 5e-324, odd["high"]]
        assert (kept["margin"], kept["bits"], kept["seconds"], kept["draws"]) == (0, None, 0.0, 10**7)
        assert kept["message"] == "half ? a?letter ' \" é ∞"

    def test_numbers_of_numpy_and_words_of_enumerations_are_numbers_and_words(self, store: Store) -> None:
        odd = {"distinguish": np.float64(0.1), "low": np.float32(0.5), "high": 1, "verdict": Verdict.BLIND}
        store.add([row(0, None, odd, confidence=1, draws=np.int64(7), seed=True)])
        kept = frame(store).row(0, named=True)
        assert [kept[name] for name in ("distinguish", "low", "high", "confidence")] == [0.1, 0.5, 1.0, 1.0]
        assert (kept["draws"], kept["seed"], kept["verdict"]) == (7, 1, "blind")

    def test_two_programs_add_at_once(self, url: str, store: Store) -> None:
        """Half of the cells are the same, in another order: each is there once, and none is lost."""
        programs = [
            subprocess.Popen([*PROGRAM, "add", url, *words.split()], stdout=subprocess.PIPE, text=True)
            for words in ("0 400 1", "200 600 2")
        ]
        told = [int(number) for each in programs for number in each.communicate()[0].split()]
        assert [each.returncode for each in programs] == [0, 0]
        assert sorted(told) == sorted([*range(400), *range(200, 600)])
        assert [each[0] for each in contents(store)] == sorted(row(i)[0] for i in range(600))
        require_complete(store)

    def test_creators_at_once_make_one_store(self, url: str) -> None:
        programs = [
            subprocess.Popen([*PROGRAM, "add", url, *words.split()], stdout=subprocess.DEVNULL)
            for words in ("0 7 1", "7 14 2")
        ]
        assert [each.wait() for each in programs] == [0, 0]
        assert [each[0] for each in contents(open_store(url))] == sorted(row(i)[0] for i in range(14))

    @pytest.mark.parametrize(
        ("condition", "numbers"),
        [
            ("mechanism=softmax", "0456"),
            ("mechanism=power", "12"),
            ("mechanism=power:beta=2", "1"),
            ("mechanism=power:beta=2,gamma=3,powerful", "23"),
            ("a1=1/3", "0"),
            ("a1=2/6", "0"),
            ("a1=0.3", "1"),
            ("a1=3e-1,0.33333333333333333", "1"),
            ("a1=0.30:1/3", "012"),
            ("a1=0.3:0.3", "1"),
            ("a1=0.30000000000000000001:", "0246"),
            ("a1=:0.3", "135"),
            ("a1=-1:-0.5", "3"),
            ("a1=:-0.5", "3"),
            ("a1=33/100:34/100", "0"),
            ("a1=1e400:", "4"),
            ("a1=1e399:1e401", "4"),
            ("a1=-1:0", "35"),
            ("n=1e3", "0"),
            ("n=1000,2000", "02"),
            ("n=1e3:2e3", "012"),
            ("n=:1e3", "0"),
            ("n=9007199254740993", "4"),
            ("n=9007199254740993:9e99", "4"),
            (f"n={HUGE}", "5"),
            ("n=1e400", "5"),
            (f"n={HUGE},1000", "05"),
            ("n=1e308:", "56"),
            ("n=1e400:1e400", "5"),
            ("n=1e16:1e401", "56"),
            ("form=ones", "012346"),
            ("form=ones,twos", "0123456"),
            ("seed=3", "5"),
            ("seed=3,4", "56"),
            ("seed=3:4", "56"),
            (f"seed={2**60 + 1}", "4"),
            (f"seed={2**60}", ""),
            ("seed=3.5", ""),
            ("seed=1e30", ""),
            ("draws=100", "456"),
            ("verdict=partial,undecided", "6"),
            ("distinguish=0.2:0.5", "23"),
            ("seconds=1/4", "0123456"),
            ("dtype=float64", "456"),
            ("construction=plain", ""),
            ("mechanism=,", ""),
            ("mechanism=' OR 1=1 --", ""),
            ("mechanism=s%", ""),
            ("n=1;DROP TABLE cells", None),
            ("form=x'); DROP TABLE cells; --", ""),
        ],
    )
    def test_conditions(self, varied: Store, condition: str, numbers: str | None) -> None:
        name, _, value = condition.partition("=")
        if numbers is None:
            with pytest.raises(UsageError, match=r"^n=1;DROP TABLE cells is not a number$"):
                results(varied, **{name: value})
        else:
            assert found(varied, **{name: value}) == set(numbers)
        assert len(contents(varied)) == 7

    @pytest.mark.parametrize(
        ("condition", "complaint"),
        [
            ("form=1:2", "form=1:2 is a range, but form is a word, as in form="),
            ("a2=1", r"no stored cell has a2 \(did you mean a1\?\); conditions can be on: construction, "),
            ("mechanism=soft%", r"no stored cell has mechanism soft% \(did you mean softmax\?\)"),
            ("n=3:2", "n=3:2 runs backwards; write n=2:3"),
            ("mecanism=softmax", r"no stored cell has mecanism \(did you mean mechanism\?\)"),
            ("n=1:2:3", "n=1:2:3 is not a range; write n=low:high"),
            ("n=:", "n=: is not a range"),
            ("a1=x:1", "a1=x is not a number"),
            ("seed=few", "seed=few is not a number"),
            ("verdict=blnd", "verdict=blnd is not one of distinguishes, blind"),
            ('a"1=3', 'a"1 is not the name of a column or a parameter'),
            ("$.n=3", r"\$\.n is not the name"),
        ],
    )
    def test_conditions_that_make_no_sense(self, varied: Store, condition: str, complaint: str) -> None:
        name, _, value = condition.partition("=")
        with pytest.raises(UsageError, match=f"^{complaint}[^\n]*$"):
            results(varied, **{name: value})

    def test_conditions_must_all_hold(self, varied: Store) -> None:
        assert found(varied, mechanism="power", n="1e3:1500", status="done") == {"1"}

    def test_parameters_called_as_columns_are(self, store: Store) -> None:
        store.add([row(i, {"seed": str(i), "q": "0.5"}, {"q": "1"}, construction="rough", seed=9) for i in range(3)])
        assert found(store, parameter_seed="1:") == {"1", "2"}
        assert found(store, seed=9) == {"0", "1", "2"}
        shown = results(store, parameter_seed=2)
        assert shown.select("parameter_seed", "seed", "parameter_q", "q").rows() == [(2, 9, 0.5, "1")]

    def test_columns_have_types(self, varied: Store) -> None:
        shown = frame(varied)
        assert shown.schema["n"] == pl.Float64  # some are beyond all integers
        assert shown.schema["form"] == pl.String
        few = results(varied, n="1e3:2e3")
        assert few.schema["n"] == few.schema["seed"] == pl.Int64
        assert few.schema["a1"] == few.schema["distinguish"] == pl.Float64
        assert few.schema["p0"] == few.schema["versions"] == pl.String
        exact = {json.loads(text)["a1"] for text in few["parameters"]}
        assert exact == {"1/3", "0.3", "0.30000000000000000001"}

    def test_nothing_found_has_the_same_columns(self, varied: Store) -> None:
        none, some = results(varied, n=7), results(varied, n="1e3:2e3")
        assert none.height == 0
        shared = {name: kind for name, kind in some.schema.items() if name not in POINT}
        assert dict(none.schema) == shared

    def test_an_empty_store(self, store: Store) -> None:
        assert results(store).height == results(store, mechanism="softmax", whatever="1:2").height == 0
        assert list_sweeps(store)[0] == []
        assert store.find_statuses(["x"]) == store.find_statuses([]) == {}
        store.add([])
        with pytest.raises(UsageError, match=r"there is no sweep paper in .*; there are none$"):
            results(store, sweep="paper")

    def test_limit(self, varied: Store) -> None:
        assert results(varied, limit=3).height == 3
        assert results(varied, limit=0).height == 0

    def test_sweeps(self, store: Store) -> None:
        store.add(map(row, range(4)))
        one = store.begin_sweep("k1", "paper", "text")
        two = store.begin_sweep("k2", "paper", "other text")
        assert store.begin_sweep("k1", "paper", "text") == one != two
        members = [(row(i)[0], "part") for i in (3, 1, 9)]
        for _ in range(2):
            store.add_members(one, members)
        store.add_members(two, [(row(1)[0], "part"), (row(1)[0], "other part")])
        assert [(each.id, each.cells, each.plan) for each in list_sweeps(store)[0]] == [
            (one, 2, "text"),
            (two, 1, "other text"),
        ]
        assert results(store, sweep=str(one)).select("part", "p0").sort("p0").rows() == [
            ("part", "1/97"),
            ("part", "3/97"),
        ]
        assert sorted(results(store, sweep="paper")["part"]) == ["other part", "part"]

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            ("UPDATE separatrix_store SET version = 99", "has version 99, and this separatrix reads version 1"),
            ("UPDATE separatrix_store SET version = 0", "has version 0, and this separatrix reads version 1"),
            ("DELETE FROM separatrix_store", "has no clear version"),
            ("INSERT INTO separatrix_store VALUES (1)", "has no clear version"),
            ("DROP TABLE separatrix_store", "is a database of another program"),
        ],
    )
    def test_stores_of_no_known_version_are_refused(self, store: Store, url: str, change: str, complaint: str) -> None:
        store.add([row(0)])
        before = contents(store)
        with store.writing() as connection:
            connection.execute(text(change))
        for create in (False, True):
            with pytest.raises(StoreError, match=f"^the store [^\n]*{re.escape(complaint)}[^\n]*$"):
                open_store(url, create=create, check=create)
        assert contents(store) == before

    def test_numbers_too_large_for_a_database(self, store: Store) -> None:
        with pytest.raises(StoreError, match="cannot hold a number this large"):
            store.add([row(0, seed=2**63)])
        assert contents(store) == []

    @pytest.mark.parametrize("parameters", ["[1, 2]", '"softmax"', "7", "null", '{"n": ["1"]}', '{"n": 5}'])
    def test_parameters_that_no_sweep_made_are_left_out(self, store: Store, parameters: str) -> None:
        store.add([row(0), row(1)])
        with store.writing() as connection:
            changed = {"p": parameters, "id": row(0)[0]}
            connection.execute(text("UPDATE cells SET parameters = :p WHERE id = :id"), changed)
            own = select(*(cast_json(column, store) for column in cells.c)).where(cells.c.id == row(0)[0])
            forged = {"sum": checksum(tuple(connection.execute(own).one())[:-1]), "id": row(0)[0]}
            connection.execute(text("UPDATE cells SET checksum = :sum WHERE id = :id"), forged)
        with pytest.warns(DamageWarning, match=r"^the store [^\n]* is damaged: 1 cell is altered; the intact "):
            assert frame(store)["id"].to_list() == [row(1)[0]]

    def test_one_altered_cell_leaves_the_others(self, store: Store) -> None:
        """The sealed columns of each table: what was altered is left out, with a warning and a count."""
        store.add(map(row, range(5)))
        number = store.begin_sweep("k1", "paper", "text")
        store.add_members(number, [(row(i)[0], "part") for i in range(5)])
        altered = row(2)[0]
        with store.writing() as connection:
            connection.execute(text("UPDATE cells SET verdict = 'partial' WHERE id = :id"), {"id": altered})
            connection.execute(text("UPDATE members SET part = 'p' WHERE cell = :id"), {"id": row(3)[0]})
        with pytest.warns(DamageWarning, match=r"is damaged: 1 cell is altered; the intact rows are used"):
            assert set(frame(store)["id"]) == {row(i)[0] for i in (0, 1, 3, 4)}
        with pytest.warns(DamageWarning, match="1 cell is altered, 1 member of a sweep is altered"):
            assert set(frame(store, None, number)["id"]) == {row(i)[0] for i in (0, 1, 4)}
        with store.writing() as connection:
            connection.execute(text("UPDATE sweeps SET name = 'other'"))
        with pytest.raises(StoreError, match=r"there is no sweep other, but .* 1 sweep is altered"):
            results(store, sweep="other")

    def test_what_is_intact_is_saved(self, store: Store, url: str, tmp_path: Path) -> None:
        elsewhere = Environment("elsewhere", {"python": "3.12"})
        store.add([*map(row, range(5)), failed(5), row(6, None, {"environment": elsewhere})])
        for key in ("k1", "k2"):
            number = store.begin_sweep(key, f"plan {key}", "text")
            store.add_members(number, [(row(i)[0], "part") for i in range(8)])
        assert check_store(url).sound
        before = frame(store).filter(pl.col("p0") != "2/97")
        with store.writing() as connection:
            connection.execute(text("UPDATE cells SET verdict = 'partial' WHERE p0 = '2/97'"))
            connection.execute(text("UPDATE sweeps SET plan = 'other' WHERE key = 'k1'"))
        health = check_store(url)
        assert not health.sound
        assert health.as_json()["damaged"] == {
            "altered": {"cells": 1, "sweeps": 1}, "lost": {"members": 8}
        }  # fmt: skip
        path = tmp_path / "saved.db"
        saved = repair_store(url, path)
        assert saved.store == str(path)
        assert (saved.cells, saved.sweeps, saved.members, saved.environments) == (6, 1, 8, 2)
        again = check_store(str(path))
        assert again.sound
        assert (again.cells, again.sweeps, again.members) == (6, 1, 8)
        copy = open_store(str(path))
        assert frame(copy).equals(before)
        assert [(each.id, each.name, each.cells) for each in list_sweeps(copy)[0]] == [(number, "plan k2", 6)]
        assert not check_store(url).sound
        with pytest.raises(UsageError, match=r"saved\.db exists already and is left unchanged"):
            repair_store(url, path)

    def test_a_backup_while_others_write(self, store: Store, url: str, tmp_path: Path) -> None:
        store.add(map(row, range(50)))
        command = [*PROGRAM, "add", url, "50", "400", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            program.stdout.readline()
            copy = backup_store(url, tmp_path / "copy.db").copy
            program.stdout.read()
        assert program.returncode == 0
        health = check_store(str(copy))
        assert health.sound
        assert 50 < health.cells <= 400
        assert (health.cells - 50) % 7 == 0
        assert len(contents(store)) == 400

    def test_names_and_numbers_of_sweeps(self, store: Store) -> None:
        store.add(map(row, range(3)))
        first = store.begin_sweep("k1", "paper", "text")
        second = store.begin_sweep("k2", str(first), "text")
        third = store.begin_sweep("k3", "77", "text")
        assert find_sweep(store, str(first)) == first
        assert find_sweep(store, f"name:{first}") == second
        assert find_sweep(store, "name:paper") == find_sweep(store, "paper") == first
        assert find_sweep(store, "name:77") == third
        with pytest.raises(UsageError, match="there is no sweep number 77; the sweep of that name is name:77"):
            find_sweep(store, "77")

    def test_read_filter_needs_no_store(self) -> None:
        assert read_filter({"n": 5, "seed": 3}).conditions == {"n": "5", "seed": "3"}
