"""Passwords are never shown: not in answers, not in refusals, not in files, not to who lists processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from separatrix.cli import main
from separatrix.core.parameters import UsageError
from separatrix.core.secrets import Secret, without_passwords
from separatrix.sweeps.dask_setup import read_address
from separatrix.sweeps.store import StoreError, open_store, parse_address

CANARY = "k4n4ry"
PLAN = """
name = "one"
[[sweep]]
construction = "spike"
mechanisms = ["softmax"]
engine = "closed"
parameters = { n = 1000, d = 102, m = 12, a0 = 0.01, a1 = 1.2, b = 0.2, c = 0.1 }
"""
MALFORMED = [
    f"postgresql://me:{CANARY}@host:port/db",
    f"postgresql://me:{CANARY}@host:99999999999999999999999/db",
    f"postgresql://me:{CANARY}",
    f"postgresql://me:a@{CANARY}@host/db",
    f"postgresql://me:a@{CANARY}?b@host/db",
    f"postgresql://m/e:{CANARY}@host/db",
    f"postgresql:///me:{CANARY}@host/db",
    f"postgresql:/me:{CANARY}@host/db",
    f"postgresql:me:{CANARY}@host/db",
    f"postgresql//me:{CANARY}@host/db",
    f"postgres://me:{CANARY}@host/db",
    f"mysql://me:{CANARY}@host/db",
    f"{CANARY}postgresql://me:b@host/db",
    f"sqlite://me:{CANARY}@host/db",
    f"sqlite:///postgresql://me:{CANARY}@host/db",
    f"postgresql://me: {CANARY} @host name/db",
    f"postgresql://me:{CANARY}@host/dbpostgresql://me:{CANARY}@host/db",
    f"postgresql://me@host/db&password={CANARY}",
    f"postgresql://me@host/db?password={CANARY}&password={CANARY}",
    f"postgresql://me:{CANARY}%00@host/db",
    f"postgresql://me:{CANARY}@127.0.0.1:1/db?row_factory=x",
    f"postgresql://me:{CANARY}\n@host/db",
    f"jdbc:postgresql://host/db?password={CANARY}",
    f"me:{CANARY}@host/db",
    f"host=127.0.0.1 dbname=db user=me password={CANARY}",
    f"host=127.0.0.1 PASSWORD = '{CANARY} {CANARY}'",
]
UNREACHABLE = [
    f"postgresql://me:{CANARY}@127.0.0.1:1/db",
    f"postgresql+psycopg://me:{CANARY}%40%2F@127.0.0.1:1/db?sslpassword={CANARY}",
    f"postgresql://me@127.0.0.1:1/db?password={CANARY}",
    f"postgresql://127.0.0.1:1/db?sslmode=require;password={CANARY}",
    f"postgresql://127.0.0.1:1/db?sslmode={CANARY}:x",
    f"postgresql://127.0.0.1:1/db?options={CANARY}&connect_timeout={CANARY}",
]
SCHEDULERS = [
    f"tls://me:{CANARY}@host:8786",
    f"tcp://{CANARY}@host:8786",
    f"me:{CANARY}@host:8786",
    f"tcp://me:{CANARY}",
    f"tcp://host:8786?token={CANARY}",
    f"tcp://host:8786/{CANARY}",
    f"tcp://host:8786 password={CANARY}",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def refusal(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> str:
    """The one line that a command ends with, having shown and written nothing of the secret."""
    monkeypatch.setattr(sys, "argv", ["separatrix", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    out, said = capsys.readouterr()
    assert ended.value.code == 2, (out, said)
    assert CANARY not in out + said
    assert said.startswith("separatrix: ")
    assert said.count("\n") == 1
    assert [each.name for each in folder.rglob("*")] == ["plan.toml"]
    return said


STORES = [
    "sweep plan.toml --workers 1 --store",
    "sweep plan.toml --workers 1 --json --store",
    "sweep plan.toml --workers 1 --dry-run --json --store",
    "results --store",
    "results --csv --store",
    "report --store",
    "compare 1 2 --store",
    "list sweeps --store",
]


@pytest.mark.parametrize("command", STORES)
@pytest.mark.parametrize("urls", [MALFORMED, UNREACHABLE], ids=["malformed", "unreachable"])
def test_no_command_shows_the_password_of_a_store(
    command: str, urls: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for url in urls:
        refusal([*command.split(), url], monkeypatch, capsys, folder)


def test_nor_one_that_stands_in_the_wrong_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, settings = f"postgresql://me:{CANARY}@host/db", f"password={CANARY}"
    for words in (
        ["sweep", url],
        ["sweep", "plan.toml", url],
        ["results", url],
        ["results", settings],
        ["list", url],
        ["list", "sweeps", f"--stor={url}"],
        ["compare", "1", "2", "--other-store", url, "--store", url.replace("host", "127.0.0.1:1")],
        [url],
        ["verdict", url, "softmax"],
        ["assess", url],
        ["assess", url.replace("host/db", "0123456789ab")],
        ["sweep", "plan.toml", "--workers", url],
        ["sweep", "plan.toml", "--allow"],
    ):
        refusal(words, monkeypatch, capsys, folder)


@pytest.mark.parametrize("command", ["sweep plan.toml --scheduler", "sweep plan.toml --dry-run --scheduler", "worker"])
def test_no_command_shows_the_password_of_a_scheduler(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for address in SCHEDULERS:
        words = [*command.split(), address]
        (folder / "results.db").unlink(missing_ok=True)
        monkeypatch.setattr(sys, "argv", ["separatrix", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, said = capsys.readouterr()
        assert ended.value.code == 2
        assert CANARY not in out + said
        assert "address of a Dask scheduler" in said


SPECIAL = ["@", ":", "/", "?", "#", "%40", "%", "=", "&", " ", "'", "a", "7", "\\", "é", "[", "]"]
PASSWORDS = st.lists(st.sampled_from([CANARY, *SPECIAL]), max_size=8).map(lambda some: "".join([*some, CANARY]))
SCHEMES = """
    postgresql:// postgresql+psycopg:// postgresql:/ postgresql:/// postgres:// postgresql// jdbc:postgresql://
    sqlite:/// sqlite:// mysql:// http://
"""
USERS, HOSTS = ["me", "", "a b", "a/b"], ["host", "", "a b", "[::1]"]


def shown(text: str) -> str:
    """All that can be shown of what was typed, read or refused."""
    try:
        found = parse_address(Secret(text))
    except UsageError as error:
        return str(error)
    return f"{found} {found!r} {found.shown} {found.server}"


@given(st.sampled_from(["", *SCHEMES.split()]), st.sampled_from(USERS), PASSWORDS, st.sampled_from(HOSTS))
@example("postgresql://", "me", f"a@{CANARY}?", "host")
def test_whatever_stands_between_a_user_and_a_host_is_not_shown(
    scheme: str, user: str, password: str, host: str
) -> None:
    unbroken = password.replace("&", "").replace(";", "")
    assert CANARY not in shown(f"{scheme}{user}:{password}@{host}/db")
    assert CANARY not in shown(f"{scheme}{user}:{password}@{host}:x/db")
    assert CANARY not in shown(f"{scheme}{user}@{host}/db?password={unbroken}")
    assert CANARY not in without_passwords(f"there is no plan postgresql://me:{password}@{host}/db here")
    hint = "write for example sqlite:///results.db or postgresql+psycopg://user@host/database"
    assert without_passwords(hint) == hint


MARK = "0123456789ab"


@pytest.mark.parametrize("name", ["mine:net", "sub/mine:Net:dim=4,seed=0", "../a-b/mine.part:Net.inner"])
def test_mechanisms_with_weights_are_shown_as_they_are(name: str) -> None:
    spelled = f"{name}@{MARK}"
    for said in (f"{spelled} raised", f"{spelled}: it", f"({spelled}).", f"{spelled},{spelled}, {spelled}"):
        assert without_passwords(said) == said
    assert without_passwords(f"{spelled} me:{CANARY}@host") == f"{spelled} me:***@host"


def test_hosts_that_look_like_a_mark_of_weights_are_none() -> None:
    for address in (url for url in MALFORMED if f"{CANARY}@host/db" in url):
        for host in (MARK, f"{MARK}/db", f"{MARK}:5432", f"{MARK}.local"):
            told = address.replace("@host/db", f"@{host}")
            if told != f"me:{CANARY}@{MARK}":  # nothing tells this from a mechanism
                assert CANARY not in without_passwords(f"there is no {told}"), told


def test_what_connects_holds_the_password_and_what_is_shown_can_be_given_again() -> None:
    text = "postgresql://me:a%40b%2Fc@db.example.org:5433/results?sslmode=require&sslpassword=x"
    found = parse_address(text)
    assert found.settings == {"password": "a@b/c", "sslpassword": "x", "sslmode": "require"}
    assert found.shown == "postgresql+psycopg://me:***@db.example.org:5433/results?sslmode=require"
    assert parse_address(found.shown).server == found.server
    assert parse_address(found) is found
    message = 'invalid value "a@b/c" or a%40b%2Fc of sslpassword x, says the axis'
    assert found.hide_secrets(message) == 'invalid value "***" or *** of sslpassword ***, says the axis'


def test_an_engine_does_not_know_the_password_it_connects_with(monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    given: list[dict[str, object]] = []

    def connect(*_: object, **options: object) -> None:
        given.append(options)
        raise psycopg.OperationalError(f"no password {CANARY}, nor {CANARY}%40")

    monkeypatch.setattr(psycopg.Connection, "connect", connect)
    monkeypatch.setattr(psycopg, "connect", connect)
    with pytest.raises(StoreError) as raised:
        open_store(f"postgresql://me:{CANARY}%40@host/db?sslpassword={CANARY}")
    assert given[0]["password"] == f"{CANARY}@"
    assert CANARY not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_file_may_be_called_anything(tmp_path: Path) -> None:
    for name in ("100%.db", "why?.db", "a%20b.db", "postgres.db", "a:b.db", "a@b.db", "a b#c.db"):
        for text in (str(tmp_path / name), f"sqlite:///{tmp_path / name}"):
            assert parse_address(text).path == tmp_path / name
            open_store(text, create=True)
        assert (tmp_path / name).exists()
    odd = tmp_path / "a:b@c.db"
    with pytest.raises(UsageError, match="this is not the address of a store"):
        open_store(str(odd), create=True)
    odd.write_bytes((tmp_path / "a:b.db").read_bytes())
    assert open_store(str(odd)).location == str(odd)


def test_secrets_are_not_spelled() -> None:
    secret = Secret(CANARY)
    assert CANARY not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == CANARY
    with pytest.raises(UsageError, match=r"'10\.0\.0\.7' is not the address"):
        read_address("10.0.0.7")
