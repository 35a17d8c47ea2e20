"""Calls of Coq's compiler on developments that this program writes."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from separatrix.core.errors import UsageError

SECONDS = 900
"""The longest time Coq gets; the proofs at the reference point take 20 seconds at most."""

MAX_MEMORY = 1 << 33
"""The most bytes of address space that Coq gets."""

INSTALL = "on Debian or Ubuntu: apt-get install --no-install-recommends coq libcoq-interval"

KNOWN_AXIOMS = re.compile(
    r"ClassicalDedekindReals\.sig_(not|forall)_dec|FunctionalExtensionality\.functional_extensionality_dep"
    r"|Classical_Prop\.classic|(PrimInt63|Uint63)\.\w+"
)
"""What a development may take for granted: real numbers, and the processor's integers."""

_AXIOM = re.compile(r"^([A-Za-z_][\w.']*)(?:\s*:|$)", re.MULTILINE)


@dataclass(frozen=True)
class CoqReport:
    """Whether Coq accepted a development, and the axioms that its theorem rests on."""

    failure: str | None
    """One line; None if Coq accepted it."""
    version: str
    axioms: tuple[str, ...]


def run_coq(text: str, seconds: float = SECONDS) -> CoqReport:
    """Let coqc verify a development in a temporary directory, or raise a UsageError if it is not installed.

    Coq files may contain commands that write files or load plugins: pass only texts that `coq_development` returned.
    """
    coqc = shutil.which("coqc")
    if coqc is None:
        raise UsageError(f"coqc is not installed, so the proof was not verified; {INSTALL}")
    version = subprocess.run([coqc, "--print-version"], capture_output=True, text=True, check=False).stdout.split()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "development.v")
        file.write_text(text, encoding="utf-8")
        # -q: no start-up file of the user is read.
        command = [coqc, "-q", "-w", "none", "-native-compiler", "no", file.name]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
                preexec_fn=_limit_memory,
                env={"PATH": os.environ.get("PATH", ""), "HOME": folder},
            )
        except subprocess.TimeoutExpired:
            return CoqReport(f"Coq did not finish within {seconds:g} seconds", version[0], ())
    output, errors = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    if "Cannot find a physical path" in errors or "Unable to locate library" in errors:
        raise UsageError(f"Coq's interval library is not installed, so the proof was not verified; {INSTALL}")
    if done.returncode != 0:
        return CoqReport(f"Coq does not accept {_describe_error(text, errors)}", version[0], ())
    axioms = tuple(sorted(_AXIOM.findall(output.partition("Axioms:")[2])))
    unknown = [axiom for axiom in axioms if not KNOWN_AXIOMS.fullmatch(axiom)]
    failure = f"the theorem rests on the unknown axiom {unknown[0]}" if unknown else None
    if "Axioms:" not in output:
        failure = "Coq did not print the axioms of the theorem"
    return CoqReport(failure, version[0], axioms)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def _describe_error(text: str, errors: str) -> str:
    """Return the lemma in which Coq failed, and its message, in one line."""
    place = re.search(r"line (\d+), characters", errors)
    number = int(place[1]) if place else 0
    names = re.findall(r"^(?:Lemma|Theorem|Definition) (\w+)", "\n".join(text.splitlines()[:number]), re.MULTILINE)
    message = " ".join(errors.partition("Error:")[2].split())[:100] or "no message"
    return f"{names[-1] if names else 'the file'}, line {number}: {message}"
