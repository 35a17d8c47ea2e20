"""`prove`: the verdict for every n, or the n at which it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli import options
from separatrix.cli.progress import announced
from separatrix.cli.terminal import COLOURS, WRITTEN, console, new_table, print_json, print_lines, show
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import round_up_for_people

if TYPE_CHECKING:
    from separatrix.exact.proofs import Proof, Proofs

ANNOUNCEMENT = "every change of P over all n; a second, or minutes if d is large"
ENDINGS = (".png", ".svg", ".pdf", ".csv", ".parquet", ".json")
HINT = "To verify it with separate code, add --certificate FILE"
MAX_TABLE_ROWS = 12
MAX_SHOWN = 10**18
FIRST_ROWS, LAST_ROWS = 4, 3
"""The rows that a longer table shows, besides those where the verdict changes."""


def prove(
    construction: options.ConstructionName,
    mechanisms: options.MechanismNames,
    words: options.Words = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="First n, for example n=1000 (default: the reference point's).")
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="RANGES", help='Every d, a0, a1, b, c in ranges: "d=102: a1=1.2: b=0.1:0.2".'),
    ] = None,
    theorem: Annotated[
        bool, typer.Option("--theorem", help="--for every larger d and a1 and smaller a0 (linear: smaller a1).")
    ] = False,
    verdict: Annotated[
        str | None, typer.Option(help="Verdict to prove (default: the one at the first n); exit code 1 if it fails.")
    ] = None,
    delta: options.DeltaOption = "0.01",
    certificate: Annotated[Path | None, typer.Option(help="Write a certificate of the proof here.")] = None,
    coq: Annotated[
        Path | None, typer.Option(help="Write the proof here (.v) for Coq; separatrix check FILE.v runs it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the result: .png, .svg, .pdf, .csv, .parquet or .json.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Prove a verdict for every n, or find the n at which it fails.

    All parameters but n are fixed. Shows every value of P(tells apart), the n of each change, the limit, and the
    verdict that holds for ever with the n from which on it does. Applies to softmax, linear, power and taylor
    attention on spike and cross; elsewhere the question is open. Parameters that are not given take the values of
    the construction's reference point.

    \b
    Examples:
      separatrix prove spike softmax,linear --from n=1000
      separatrix prove spike softmax a1=0.8 --certificate proof.json
      separatrix prove cross softmax,taylor:order=3 r_Q=2
      separatrix prove spike softmax --coq proof.v
    """
    from separatrix.core.files.writing import require_distinct, require_writable, write_whole
    from separatrix.core.parameters import UsageError, split_mechanisms
    from separatrix.exact.proofs import certify_proof, coq_development, prove_several
    from separatrix.exact.proofs.request import parse_proof_request
    from separatrix.exact.verdicts import write_certificate

    construction, mechanisms, parameters = options.read_question(prove, construction, mechanisms, words)
    names = split_mechanisms(mechanisms) or [mechanisms]
    for file, kind, endings in ((certificate, "certificate", ()), (coq, "Coq file", (".v",))):
        if file is not None:
            if len(names) > 1:
                raise UsageError(f"a {kind} is of one mechanism, not of {len(names)}; ask for each by itself")
            require_writable(file, endings)
    if out is not None:
        require_writable(out, ENDINGS)
    require_distinct(certificate=certificate, coq=coq, out=out)
    if for_ is not None or theorem:
        if coq is not None or out is not None:
            raise UsageError("--coq and --out are for fixed parameters; leave out --for and --theorem")
        ranges = None if theorem else for_
        _prove_uniformly(construction, names, parameters, ranges, from_, delta, verdict, certificate, as_json)
        return
    # Everything is parsed before anything is computed, so that errors appear at once.
    requests = [parse_proof_request(construction, name, parameters, from_, delta, verdict) for name in names]
    result: Proof | Proofs
    with announced("prove", ANNOUNCEMENT, as_json):
        if len(requests) > 1:
            result = prove_several(requests)
            proofs = result.answers
        else:
            result = requests[0].compute()
            proofs = (result,)
            if certificate is not None:
                write_certificate(certificate, certify_proof(result))
            if coq is not None:
                write_whole(coq, coq_development(certify_proof(result)).encode())
    if out is not None:
        result.save(out)
    show(result, as_json, lambda: _view(result, certificate, coq), out)
    if verdict is not None and not (len(proofs) == len(requests) and all(proof.is_proved for proof in proofs)):
        raise typer.Exit(1)


def _view(result: Proof | Proofs, certificate: Path | None, coq: Path | None) -> None:
    """Print the statement for each mechanism, and what holds for all of them."""
    from separatrix.constructions.reference import format_defaults_sentence
    from separatrix.exact.proofs import OpenProof, Proof
    from separatrix.exact.proofs.proof import PHRASES

    items = (result,) if isinstance(result, Proof) else result.proofs
    for item in items:
        if isinstance(item, OpenProof):
            print_lines([f"{item.mechanism}: {item.evidence}"], "yellow")
        else:
            _print_proof(item)
    first = next(item for item in items if isinstance(item, Proof))
    print_lines([*result.remarks, format_defaults_sentence(first.taken)])
    if certificate is not None:
        print_lines([f"{WRITTEN} {certificate}"])
    if coq is not None:
        assert isinstance(result, Proof)
        theorem = f"that it {PHRASES[result.stretches[-1].word]} for ever from n = {_spell(result.eventually.start)} on"
        print_lines([f"Coq file written, for the theorem {theorem}; verify it with: separatrix check {coq}"])
    if certificate is None and coq is None:
        print_lines([HINT if isinstance(result, Proof) else f"{HINT}, for each mechanism by itself"])


def _print_proof(proof: Proof) -> None:
    """Print the statement, the values of P and the evidence."""
    stretches = proof.stretches
    colour = COLOURS[proof.claimed] if proof.is_proved else "yellow"
    print_lines([proof.statement], f"bold {colour}")
    print_lines([proof.final_statement], f"bold {COLOURS[stretches[-1].word]}")
    rows: list[tuple[str, str, str]] = []
    previous = -1
    for i in _shown_rows(proof):
        if i > previous + 1:
            rows.append(("…", f"{i - previous - 1:,} more", ""))
        ending = ", for ever" if i == len(stretches) - 1 else ""
        stretch = stretches[i]
        rows.append((_spell(stretch.n), stretch.relation(10).removeprefix("= "), f"{stretch.word}{ending}"))
        previous = i
    console().print(new_table("from n", "P(tells apart)", "verdict", rows=rows))
    print_lines([proof.evidence])


def _spell(n: int) -> str:
    """Spell an n with all its digits, or rounded up with six of them."""
    return str(n) if n < MAX_SHOWN else round_up_for_people(n, 6)


def _shown_rows(proof: Proof) -> list[int]:
    """Return the numbers of the stretches to show: all if they are few, or else the ends and changes of verdict."""
    stretches = proof.stretches
    count = len(stretches)
    if count <= MAX_TABLE_ROWS:
        return list(range(count))
    changes = [i for i in range(1, count) if stretches[i].word != stretches[i - 1].word]
    ends = [*range(FIRST_ROWS), *range(count - LAST_ROWS, count)]
    return sorted({*ends, *changes[: MAX_TABLE_ROWS - len(ends)], *changes[-1:]})


def _prove_uniformly(
    construction: str,
    names: Sequence[str],
    parameters: Mapping[str, str],
    ranges: str | None,
    start: str | None,
    delta: str,
    verdict: str | None,
    certificate: Path | None,
    as_json: bool,
) -> None:
    """Print a uniform bound for each mechanism; without ranges, those of the theorem."""
    from separatrix.core.parameters import UsageError
    from separatrix.exact.proofs import certify_uniformly
    from separatrix.exact.proofs.request import parse_word
    from separatrix.exact.proofs.uniform import prove_uniformly, theorem_ranges
    from separatrix.exact.verdicts import write_certificate

    if construction != "spike":
        raise UsageError(
            f"the uniform theorems are about spike, not about {construction}; leave out --for and --theorem"
        )
    word = parse_word(verdict)
    proofs = [
        prove_uniformly(
            name, theorem_ranges(name, parameters) if ranges is None else ranges, parameters, start=start, delta=delta
        )
        for name in names
    ]
    if certificate is not None:
        write_certificate(certificate, certify_uniformly(proofs[0]))
    if as_json:
        print_json(proofs[0].as_json() if len(proofs) == 1 else [proof.as_json() for proof in proofs])
    else:
        for proof in proofs:
            print_lines([proof.statement], f"bold {COLOURS[proof.verdict or 'partial']}")
            print_lines([f"  {hypothesis}" for hypothesis in proof.hypotheses])
            decided = f"proves {proof.verdict}" if proof.verdict else "decides no verdict"
            bound = f"this bound {decided} at delta {format_exact(proof.delta)}"
            if word not in (None, proof.verdict):
                print_lines([f"not proved: {word}; {bound}"], "yellow")
            elif proof.verdict is None:
                print_lines([bound], "yellow")
        print_lines(
            [proofs[0].evidence, f"{WRITTEN} {certificate}" if certificate else HINT if len(proofs) == 1 else ""]
        )
    if word is not None and any(proof.verdict != word for proof in proofs):
        raise typer.Exit(1)
