"""The snippets of a page, as a reader would paste them: `run_page` runs one page from top to bottom.

A fence marked `python` is a script; all of them on a page share their names. Elsewhere a line `$ command` is
run, and the lines below it must be in what it prints, in their order; `…` stands for anything, and how words
are broken into lines is nothing. It ends with 0, or as it says: `$ command  # exit code 1`. `$ cat FILE`
writes the lines below it to that file. A fence marked `toml` is a plan, the first of a page `plan.toml`. What
is not run says why, in the line above its fence: `<!-- not run: an hour -->`; its commands must still be
known to the parser.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.main import get_command

from separatrix.cli.application import app
from separatrix.sweeps.plan import load_plan

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("**/*.md")))
FENCE = re.compile(r"^(?:<!-- not run(?: here)?: ([^\n]+) -->\n)?```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("make", "pip", "dask", "sbatch", "pytest")
"""Programs whose commands are shown and not run."""

Run = Callable[[list[str]], tuple[int, str]]


@dataclass(frozen=True)
class Snippet:
    """One fence of a page."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str
    """Why not, or nothing."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"

    def commands(self) -> Iterator[tuple[str, str]]:
        """Every command of the fence with what is shown below it."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command.strip(), shown


def snippets(page: Path) -> list[Snippet]:
    """Every fence of a page, in its order."""
    text = page.read_text()
    found = [
        Snippet(page, text.count("\n", 0, each.start()) + 1, each[2].strip(), each[3], each[1] or "")
        for each in FENCE.finditer(text)
    ]
    assert 2 * len(found) == len(re.findall("^```", text, re.MULTILINE)), f"{page}: a fence does not end"
    return found


def run_page(page: Path, separatrix: Run) -> None:
    """Run what a page shows, in the current folder."""
    names: dict[str, Any] = {"__name__": "page"}
    for snippet in snippets(page):
        if snippet.not_run:
            parse(snippet)
        elif snippet.language == "python":
            exec(compile("\n" * snippet.line + snippet.text, str(page), "exec"), names)
        elif snippet.language == "toml":
            write_plan(snippet)
        else:
            for command, shown in snippet.commands():
                run_command(snippet, command, shown, separatrix)


def write_plan(snippet: Snippet) -> None:
    """A plan is one that can be read; the first of a page is the file that its commands name."""
    folder = Path("plans")
    folder.mkdir(exist_ok=True)
    file = folder / f"line{snippet.line}.toml"
    file.write_text(snippet.text)
    load_plan(file)
    if not Path("plan.toml").exists():
        Path("plan.toml").write_text(snippet.text)


def run_command(snippet: Snippet, command: str, shown: str, separatrix: Run) -> None:
    """Run one command and hold what it prints to what the page shows."""
    command, _, remark = command.partition(" # ")
    ends = re.match(r"exit code (\d)", remark)
    program, *words = shlex.split(command)
    if program == "cat" and shown:
        Path(words[0]).write_text(shown)
        return
    if program in ELSEWHERE:
        return
    if program == "separatrix":
        code, out = separatrix(words)
    else:
        assert program == "python", f"{snippet.place}: {program} is not run here"
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        code, out = done.returncode, done.stdout
    assert code == (int(ends[1]) if ends else 0), f"{snippet.place}: {command} ends with {code}"
    wanted = r"\s+.*?".join(_pattern(line) for line in shown.splitlines() if line.strip(" …"))
    assert re.search(wanted, out, re.DOTALL), f"{snippet.place}: {command} prints\n{out}\nand not\n{shown}"


def _pattern(line: str) -> str:
    return r"\s+".join(re.escape(word).replace("…", ".*?") for word in line.split())


def parse(snippet: Snippet) -> None:
    """Words that are not run are known to the parser all the same."""
    if snippet.language == "python":
        compile(snippet.text, snippet.place, "exec")
    for command, _ in snippet.commands():
        program, *words = shlex.split(command, comments=True)
        if program == "separatrix":
            parse_words(words)


def parse_words(words: list[str]) -> None:
    """Raise if the parser does not know a command or an option."""
    command: Any = get_command(app)
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if hasattr(command, "commands"):
        assert command.invoke_without_command, f"{words} is no command"
        assert not any(word[0] != "-" for word in words[:1]), f"{words[0]} is no command"
    command.make_context(command.name, list(words))
