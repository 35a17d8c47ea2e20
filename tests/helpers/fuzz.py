"""Bad input for every command: mutated command lines and files, run in processes forked from one.

    python tests/helpers/fuzz.py --seed 0 --count 500      # prints what went wrong, and how to see it again
    python tests/helpers/fuzz.py --seed 0 --only 123       # one input, with all that it prints

Every input has a folder of its own. It must end with exit code 0, 1 or 2 and without a traceback, in time,
and files that were there before stay as they are, unless the command was to write them and did.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import os
import pkgutil
import random
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

POINT = "n=1000 d=102 m=12 a0=0.01 a1=1.2 b=0.2 c=0.1"
PLANE = "d=102 m=12 a0=0.01 b=0.2 c=0.1"
PLAN = """name = "small"
mechanisms = ["softmax", { name = "power", beta = [2, 4] }]
delta = 0.01
[parameters]
d = 12
m = 12
a0 = 0.01
a1 = 1.2
b = 0.2
c = 0.1
[[sweep]]
construction = "spike"
engine = "closed"
seeds = "0:1"
parameters.n = "1e2:1e4:3:log"
"""
MINE = "def attend(q, k, v, causal=False):\n    return v\n"
GOOD = (
    f"verdict spike softmax {POINT}",
    f"verdict spike linear {POINT} --engine closed --delta 0.05 --noise 0.1 --json",
    "verdict spike linear n=100 d=12 m=12 a0=0.01 a1=1.2 b=0.2 c=0.1 --engine dense --draws 20 --seed 3",
    "verdict majority power:beta=2 n=31 m=7 --engine grouped --draws 20 --confidence 0.9 --dtype float32",
    "verdict rough window:size=4 n=40 d=7 m=3 a0=0.01 a1=0.6 b=0.05 c=0.1 noise=0.03 seed=3 --draws 20",
    "verdict spike mine:attend n=20 d=12 m=3 a0=0.01 a1=1.2 b=0.2 c=0.1 --draws 10",
    f"verdict spike softmax {POINT} --certificate new.json",
    f"prove spike softmax,linear {POINT} --json",
    f"prove spike power:beta=2 {PLANE} a1=1.2 --from n=50 --verdict blind --delta 0.1 --out new.csv",
    f"prove spike softmax {PLANE} a1=1.2 --certificate new.json",
    "prove spike softmax,linear m=9 --for d=102:202 --from n=500 --json",
    "check proof.json",
    "check edge.json --json",
    f"map spike softmax,linear a1=0.5:1.5:4 n=1e3:1e6:3:log {PLANE} --out new.csv",
    f"map spike power:beta=2 a1=0.5:1.5:3 beta=1:4:3 n=1000 {PLANE} --of margin --json",
    f"boundary spike softmax a1=0.5:1.5 n=1e4 {PLANE} --scan 8 --at 0.5 --tolerance 1e-3",
    f"boundary spike softmax a1=0.5:1.5 n=1e4 {PLANE} --scan 8 --certificate new.json",
    f"boundary spike softmax a1=0.5:1.5 {PLANE} --over n=1e3:1e4:2:log --scan 8 --out new.csv",
    f"scaling spike linear n=1e3:1e9:4:log a1=1.2 {PLANE} --of margin",
    f"scaling spike softmax,linear n=1e3:1e9:3:log a1=1.2 {PLANE} --of bits --json",
    "scaling spike softmax,linear n=1e3:1e9:3:log --out new.csv",
    "readers spike linear n=100 d=12 m=12 a0=0.01 a1=1.2 b=0.2 c=0.1 --noise 0.1 --delta 0.1 --seed 2",
    "search softmax linear --budget 10 --seconds 5 --seed 1 --space inputs --study log.jsonl --out new.json",
    "search --check found.json",
    "search softmax linear --check found.json --json",
    "sweep plan.toml --store new.db --workers 1 --dry-run",
    "sweep plan.toml --store results.db --workers 1 --retry-failed --json",
    "results mechanism=softmax n=1e2:1e6 verdict=blind --csv",
    "results distinguish=0:1 a1=1.2 --limit 2 --sweep small --json",
    "results --store results.db --out new.csv",
    "report --sweep 1 --against small --out new",
    "compare 1 2 --store results.db --other-store results.db --json",
    "store check --store results.db --json",
    "store repair --store results.db --out new.db",
    "store backup new.db --store results.db",
    "list sweeps --store results.db",
    "data --folder folder --json",
    "data show listops --folder folder",
    "data floors digits --folder folder",
    "data fetch listops --folder folder",
    "list mechanisms --lattice --json",
    "list constructions spike --json",
    "list constructions level --out new.svg",
    "claim threshold --json",
    "verdict spike softmax,linear,power:beta=4 n=1e6",
    "list tasks --json",
    "schema verdict --json",
)
LONG = (
    "assess softmax --against linear --out new.html",
    "assess mine:attend --json",
    "atlas --out new.csv --json",
    "choose n=40 dtype=bf16 memory=2GiB --must spike,needle --mechanisms softmax,linear --out new.json",
    "bench softmax linear --json",
    "learn needle softmax,elu n=16 steps=20 tests=100 --seeds 2 --store new.db --out new.html",
    "explore --store results.db --mechanism mine:attend --port 0 --no-browser",
    "reproduce --out new",
    "worker tcp://127.0.0.1:9 --workers 1 --death-timeout 1",
)
"""Take long when nothing is wrong with them: such an input is interrupted, and has to bear it."""
NUMBERS = (
    *("0", "-1", "1.5", "1e308", "1e-4000", "1e9999999999999999999", "1" * 5001, "nan", "-inf", "1/0", "0x10"),
    *("1e18", "99999999999", "½", "١٢", "1_0", "1__0", "+", ".", "true", "1e3:1e6", "0:1:1000000000"),
    *("1:1e300:1000000:log", "1:2:3:4:5", "5:1:3", "1,2,,3", "1:2:nan", "-1:1:3:log", "::"),
)
WORDS = (
    *("", " ", "\n", "-", "--", "=", "x=", "=x", ":", ",", "a" * 20_000, "é", "💥", "\udcff", "a\udcffb"),
    *("\x1b[31mred", "%s%n", "{0}", "../..", "softmax:", "power:beta=", "power:beta=1e999999", "os:system"),
    *("os.path:join", "mine:nothing", "nothing:attend", ":attend", "mine:attend.x", "power:beta=2,beta=3"),
)
OPTIONS = (
    *("--json", "--out", "--nonsense", "--engine", "--draws", "--seed", "--store", "--certificate", "--check"),
    *("--study", "--sweep", "--limit", "--of", "--at", "--over", "--scan", "--tolerance", "--workers", "--of=x"),
    *("--confidence", "--delta", "--noise", "--dtype", "--space", "--budget", "--seconds", "--against"),
    *("--scheduler", "--allow", "--help", "--version", "-h", "-x", "--csv", "--parquet", "--difference"),
    *("--from", "--for", "--theorem", "--verdict"),
)
FILES = (
    *("plan.toml", "proof.json", "edge.json", "found.json", "log.jsonl", "results.db", "mine.py"),
    *("empty", "random", "deep.json", "deep.toml", "keys.toml", "huge.toml", "huge.json", "surrogate.json"),
    *("many.toml", "folder", "loop", "fifo", "missing", "missing/new.json", "folder/new.csv", "exists.csv"),
    *("exists.html", "exists.json", "exists.db", "/dev/zero", "/dev/null", "/dev/full", "/proc/self/mem"),
    *("new.html", "new.png", "new.db", "x" * 300, "sqlite:///results.db", "sqlite:///folder", "sqlite://"),
    *("postgresql://u:secret@127.0.0.1:1/x", "mysql://x", "sqlite:///a?mode=x", "file:results.db", "a\x00b"),
)
KINDS = (".json", ".jsonl", ".toml", ".db", ".csv", ".html")
SECONDS, PATIENCE = 120, 1.5
"""After which an input hangs; and after which one of LONG is interrupted."""
JOBS = 2
ROOM = 2 << 30
"""Bytes that an input may take beyond what is loaded before."""
ANNOUNCED = tuple(
    f"{command}: "
    for command in (
        *("assess", "atlas", "bench", "boundary", "choose", "learn", "map", "prove", "readers", "report", "reproduce"),
        *("scaling", "search", "sweep", "verdict"),
    )
)
"""How lines begin by which a long command says what it does and how far it is."""
NEVER = ("Traceback", "should not happen", "Exception ignored", "secret", "more memory than there is")


@dataclass(frozen=True)
class Input:
    """A command line, and what is changed in which file before."""

    words: tuple[str, ...]
    changed: dict[str, bytes]
    long: bool


@dataclass(frozen=True)
class Ending:
    """How an input ended."""

    code: int
    interrupted: bool
    hung: bool
    out: str
    err: str
    before: dict[str, str]
    after: dict[str, str]


def make(chance: random.Random, files: Path) -> Input:
    """A good command line with one to three things wrong, or a good one on a file that is not."""
    long = chance.random() < 0.08
    words = shlex.split(chance.choice(LONG if long else GOOD))
    named = [word for word in words if (files / word).is_file()]
    changed = {}
    if named and chance.random() < 0.5:
        name = chance.choice(named)
        changed[name] = _damaged(chance, (files / name).read_bytes())
    else:
        for _ in range(chance.choice((1, 1, 2, 3))):
            words = _mutated(chance, words)
    return Input(tuple(words), changed, long or not words or words[0] in {each.split()[0] for each in LONG})


def _mutated(chance: random.Random, words: list[str]) -> list[str]:
    first = 0 if chance.random() < 0.05 or len(words) < 2 else 1  # seldom the name of the command
    place = chance.randrange(first, max(1, len(words)))
    before, word, after = words[:place], words[place : place + 1], words[place + 1 :]
    match chance.randrange(9):
        case 0:
            return before + after
        case 1:
            return before + word * 2 + after
        case 2:
            return before + after[:1] + word + after[1:]
        case 3:
            return [*before, chance.choice(WORDS), *after]
        case 4:
            return [*before, *word, chance.choice(OPTIONS), chance.choice((*NUMBERS, *WORDS, *FILES)), *after]
        case 5:
            return [*before, chance.choice(FILES), *after]
        case 6:
            named = [i for i, each in enumerate(words) if i and (each.startswith("new") or Path(each).suffix in KINDS)]
            place = chance.choice(named) if named else place
            return [*words[:place], chance.choice(FILES), *words[place + 1 :]]
        case _:
            numbers = [i for i, each in enumerate(words) if "=" in each or each.isdigit()]
            place = chance.choice(numbers) if numbers else place
            name, equals, _ = (words[place] if words else "").partition("=")
            value = chance.choice((*NUMBERS, *NUMBERS, *WORDS))
            return [*words[:place], f"{name}={value}" if equals else value, *words[place + 1 :]]


def _damaged(chance: random.Random, data: bytes) -> bytes:
    start = chance.randrange(len(data) + 1)
    stop = min(len(data), start + chance.choice((1, 8, 200)))
    match chance.randrange(6):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + data[stop:]
        case 2:
            return data[:stop] + data[start:]
        case 3:
            return data[:start] + chance.randbytes(stop - start) + data[stop:]
        case 4:
            lines = data.splitlines(keepends=True)
            chance.shuffle(lines)
            return b"".join(lines)
        case _:
            bad = chance.choice((*NUMBERS, *WORDS, '"', "'''", "[[sweep]]\n", "{" * 50, "[" * 4000, "\\ud800"))
            return data[:start] + bad.encode(errors="surrogateescape") + data[stop:]


def lay_out(folder: Path) -> None:
    """Files of every kind, good ones and bad ones."""
    folder.mkdir()
    (folder / "plan.toml").write_text(PLAN)
    (folder / "mine.py").write_text(MINE)
    for words in (
        f"verdict spike softmax {POINT} --certificate proof.json",
        f"boundary spike softmax a1=0.5:1.5 n=1e4 {PLANE} --scan 8 --certificate edge.json",
        "search softmax linear --budget 10 --study log.jsonl --out found.json",
        "sweep plan.toml --store results.db --workers 1",
    ):
        _run_forked(words.split(), folder)
    for name in ("exists.csv", "exists.html", "exists.json", "exists.db"):
        (folder / name).write_text("what somebody still needs\n")
    (folder / "empty").write_bytes(b"")
    (folder / "random").write_bytes(random.Random(0).randbytes(3000))
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "deep.toml").write_text("x = " + "[" * 100_000)
    (folder / "keys.toml").write_text(".".join("a" * 3000) + " = 1\n")
    (folder / "huge.toml").write_text(PLAN.replace("1.2", "1" * 5001) + "\nx = 1e9999999999999999999\n")
    (folder / "huge.json").write_text('{"format": ' + "1" * 5001 + ', "x": 1e999999}')
    (folder / "surrogate.json").write_text('{"x": "\\ud800", "y": "linear", "findings": ["\\udfff"]}')
    (folder / "many.toml").write_text(PLAN + 'a1 = "0:1:1000000"\nparameters.c = "0:1:1000000"\n')
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")


def _run_forked(words: Sequence[str], folder: Path) -> None:
    """Run a command that must succeed; the forked process has everything imported already."""
    child, printed = os.fork(), (folder.with_suffix(".out"), folder.with_suffix(".err"))
    if child == 0:
        _become(words, folder, printed)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"separatrix {' '.join(words)} failed: {printed[1].read_text()}")


def states(folder: Path) -> dict[str, str]:
    """What every file under a folder is: its kind, mode and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if "__pycache__" in path.parts:
            continue
        content = ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = f"{path.lstat().st_mode:o} {content}"
    return found


def run(one: Input, template: Path, folder: Path) -> Ending:
    """Run an input in a process of its own, forked from this one."""
    shutil.copytree(template, folder, symlinks=True)
    os.mkfifo(folder / "fifo")
    for name, data in one.changed.items():
        (folder / name).write_bytes(data)
    printed = folder.with_suffix(".out"), folder.with_suffix(".err")
    before = states(folder)
    child = os.fork()
    if child == 0:
        _become(one.words, folder, printed)
    hung, interrupted, started = False, False, time.monotonic()
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        spent = time.monotonic() - started
        if spent > SECONDS:
            hung = True
            os.killpg(child, signal.SIGKILL)
        elif one.long and spent > PATIENCE and not interrupted:
            interrupted = True
            os.killpg(child, signal.SIGINT)
        time.sleep(0.005)
    _end_group(child)
    out, err = (path.read_bytes()[:1_000_000].decode(errors="replace") for path in printed)
    return Ending(os.waitstatus_to_exitcode(ended[1]), interrupted, hung, out, err, before, states(folder))


def _become(words: Sequence[str], folder: Path, printed: tuple[Path, Path]) -> None:
    """What a forked process does: be `separatrix` with these words, and never return."""
    code: object = 1
    try:
        os.setsid()
        os.chdir(folder)
        for number, path in zip((0, 1, 2), (Path(os.devnull), *printed), strict=True):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
        sys.stdout, sys.stderr = (open(number, "w", buffering=1) for number in (1, 2))  # noqa: PTH123, SIM115
        most = ROOM + _address_space()
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["separatrix", *words]
        vars(sys.modules["__main__"]).pop("__file__", None)  # which worker processes would run
        os.environ["BROWSER"] = "true"  # a program that opens nothing
        os.execve = lambda *_: os._exit(0)  # `worker` becomes a program of Dask, which is not ours
        from separatrix.cli import main

        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code if isinstance(code, int) else 1)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _end_group(child: int) -> None:
    """End what a process has left behind."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def faults(one: Input, ending: Ending) -> list[str]:
    """What is wrong with how an input ended."""
    found = [f"prints {each!r}" for each in NEVER if each in ending.out + ending.err]
    codes = (0, 1, 2, 130, -signal.SIGINT) if ending.interrupted else (0, 1, 2)
    if ending.hung:
        found.append(f"hangs for more than {SECONDS} s")
    elif ending.code not in codes:
        found.append(f"ends with {ending.code}")
    lines = [line for line in ending.err.splitlines() if not line.startswith(ANNOUNCED)]
    if ending.code == 2 and not ending.interrupted:
        if not lines and "Usage" not in ending.out:
            found.append("says nothing about what is wrong")
        if len(lines) > 1 and not all(".toml, line " in line or "more mistakes" in line for line in lines):
            found.append(f"says it in {len(lines)} lines")
    if any(len(line) > 2500 for line in lines):
        found.append("repeats a long input")
    kept = {name: state for name, state in ending.after.items() if not _is_output(name, one, ending)}
    found += [f"changes {name}" for name in kept.keys() & ending.before.keys() if kept[name] != ending.before[name]]
    found += [f"removes {name}" for name in ending.before.keys() - ending.after.keys()]
    found += [f"leaves {name} behind" for name in kept.keys() - ending.before.keys()]
    return found


def _is_output(name: str, one: Input, ending: Ending) -> bool:
    """Whether a file is what the command was to write, or was writing when it was interrupted."""
    if ending.code not in (0, 1) and not ending.interrupted:
        return False
    usual = ("results.db", "results.repaired.db", "report", "reproduction")
    named = {word.removeprefix("sqlite:///") for word in (*one.words, *usual)}
    parts = Path(name).parts
    return any(str(Path(*parts[: i + 1])) in named for i in range(len(parts)))


def load_everything() -> None:
    """Import all that commands import, so that a forked process has it."""
    import separatrix

    for module in pkgutil.walk_packages(separatrix.__path__, "separatrix."):
        importlib.import_module(module.name)
    for name in ("dask.system", "distributed", "entmax", "matplotlib.pyplot", "psycopg"):
        importlib.import_module(name)


def run_all(numbers: Sequence[int], seed: int, template: Path, told: Callable[[float], bool]) -> int:
    """Run the inputs with these numbers; tells of those at fault, and says how many they are."""
    bad = 0
    for number in numbers:
        one, started = make(random.Random(f"{seed} {number}"), template), time.monotonic()
        folder = template.with_name(str(number))
        ending = run(one, template, folder)
        wrong, spent = faults(one, ending), time.monotonic() - started
        bad += bool(wrong)
        if wrong or told(spent):
            words = (shlex.quote(word if len(word) < 200 else f"{word[:40]}…") for word in one.words)
            printed = f"{ending.out[-1000:]}{ending.err[-3000:]}".splitlines()[-30:]
            lines = (
                f"input {number}: {'; '.join(wrong) or 'as it should be'} ({ending.code}, {spent:.1f} s)",
                f"  separatrix {' '.join(words)!a}  {sorted(one.changed) or ''}",
                f"  again: python tests/helpers/fuzz.py --seed {seed} --only {number}",
                *(f"  | {line[:300]!a}" for line in printed),
            )
            print("\n".join(lines), flush=True)
        shutil.rmtree(folder)
    return bad


def _fork_share(numbers: Sequence[int], seed: int, template: Path, slow: float) -> int:
    """A process that runs its share of the inputs, and ends with 0 if none is at fault."""
    child, code = os.fork(), 1
    if child == 0:
        try:
            code = min(1, run_all(numbers, seed, template, lambda spent: spent > slow))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def main() -> int:
    """Run the inputs of a seed, in two processes at a time; the exit code is 1 if any is at fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", type=int, help="one input alone")
    parser.add_argument("--slow", type=float, default=SECONDS, help="tell of inputs that take so many seconds")
    asked = parser.parse_args()
    load_everything()
    gc.freeze()  # else a collection in a forked process would copy the pages of all that is loaded
    with tempfile.TemporaryDirectory() as name:
        template = Path(name) / "template"
        lay_out(template)
        if asked.only is not None:
            return min(1, run_all([asked.only], asked.seed, template, lambda _: True))
        numbers = range(asked.first, asked.first + asked.count)
        shares = [numbers[start::JOBS] for start in range(JOBS)]
        children = [_fork_share(share, asked.seed, template, asked.slow) for share in shares]
        failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    print(f"{asked.count} inputs, seed {asked.seed}: {'some at fault' if failed else 'none at fault'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
