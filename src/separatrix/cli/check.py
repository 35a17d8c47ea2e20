"""`check`: verify a certificate, or a proof with Coq."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit

from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced
from separatrix.cli.terminal import console, escape, print_json, print_lines

if TYPE_CHECKING:
    from separatrix.checker import Report

COQ_ANNOUNCEMENT = "Coq verifies every step; about 20 seconds, or minutes if there are hundreds of steps"
MAX_COQ_BYTES = 1 << 25
"""The header contains the certificate; the rest of a development is a few times as long."""


def check(
    file: Annotated[
        Path, Argument(help="A certificate written with --certificate, or a Coq file (.v) written by prove --coq.")
    ],
    as_json: AsJson = False,
) -> None:
    """Verify a certificate independently.

    Separate code and separate arithmetic recompute every statement in it. A file written by `prove --coq` is
    verified by Coq, if coqc is installed.
    Exit code 0: it holds; 1: it does not; 2: it is no certificate.
    """
    from separatrix.checker import check_file

    if file.suffix == ".v":
        with announced("check", COQ_ANNOUNCEMENT, as_json):
            report = check_development(file)
    else:
        report = check_file(file)
    if as_json:
        fields = ("holds", "verified", "failed", "statement")
        print_json({"file": str(file), **{name: getattr(report, name) for name in fields}})
    else:
        _view(report, file)
    raise Exit(0 if report.holds else 1)


def check_development(file: Path) -> Report:
    """Let Coq verify a development.

    The file itself is not run: Coq files can contain commands that write files. Its certificate is parsed, the
    development that belongs to it is written anew, and Coq runs only if both are equal.
    """
    from separatrix.checker import Report
    from separatrix.checker.document import Malformed, parse_json
    from separatrix.checker.proof import read_proof
    from separatrix.core.errors import EngineRefusal, UsageError
    from separatrix.core.files.reading import read_whole
    from separatrix.exact.proofs.coq import coq_development, embedded_certificate, theorem_of
    from separatrix.exact.proofs.coqc import run_coq

    try:
        text = read_whole(file, MAX_COQ_BYTES, "a proof").decode("utf-8")
        certificate = embedded_certificate(text)
        if certificate is None:
            raise Malformed("its header contains no certificate")
        document = parse_json(certificate.encode())
        read_proof(document)
        assert isinstance(document, dict)
        expected = coq_development(document)
    except (Malformed, UnicodeDecodeError, EngineRefusal) as fault:
        reason = "it is not text" if isinstance(fault, UnicodeDecodeError) else str(fault)
        raise UsageError(f"{file} was not written by separatrix prove --coq, and no other is run: {reason}") from None
    if text != expected:
        pairs = zip(text.splitlines(), expected.splitlines(), strict=False)
        line = next((i for i, (own, other) in enumerate(pairs, 1) if own != other), 0)
        where = f"line {line}" if line else "its end"
        return Report(0, [f"{where} is not what the certificate in the header gives, so Coq was not started"])
    result = run_coq(text)
    if result.failure is not None:
        return Report(0, [result.failure])
    numbers = any(axiom.startswith("Prim") for axiom in result.axioms)
    processor = ", and the 63-bit integers of the processor" if numbers else ""
    statement = (
        f"Coq {result.version} accepts the theorem {theorem_of(text)}",
        "This is the verdict itself: the network, its inputs and P are defined in sections 1 and 8 of the file, and "
        "every step from there is proved.",
        f"Taken for granted: Coq itself and its axioms of real numbers{processor} ({len(result.axioms)} axioms, listed "
        "by Print Assumptions).",
        "Not claimed: anything at other parameters, d and m included, with another reader or threshold, or in "
        "floating-point arithmetic.",
    )
    return Report(1, [], statement)


def _view(report: Report, file: Path) -> None:
    """Print the checker's findings."""
    out = console()
    for line in report.failed:
        out.print(f"[red]fails[/]  {escape(line)}")
    word = "[bold green]holds[/]" if report.holds else "[bold red]does not hold[/]"
    kind, counts = "certificate", f"{report.verified} statements verified, {len(report.failed)} failed"
    if file.suffix == ".v":
        kind, counts = "proof", "verified by Coq" if report.holds else "not verified by Coq"
    out.print(f"{escape(str(file))}: {kind} {word} ({counts})")
    print_lines(report.statement)
