"""Verdicts, proofs for every n, boundaries and certificates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from separatrix.analysis.maps import Boundary, BoundaryCurve, boundary
from separatrix.analysis.maps.boundary import parse_level, read_second_axis, search_span, split_range
from separatrix.constructions import construction_named
from separatrix.constructions.reference import read_with_defaults
from separatrix.core.parameters import UsageError, all_parameters, split_mechanisms
from separatrix.core.parameters.ranges import Number, read_counted
from separatrix.exact.engines import EngineRefusal, engine_named
from separatrix.exact.proofs import Proof, certify_proof
from separatrix.exact.proofs.request import ProofRequest, parse_proof_request
from separatrix.exact.verdicts import Verdict, Verdicts, certify, verdict, write_certificate
from separatrix.exact.verdicts.question import Question, question
from separatrix.exact.verdicts.verdict import parse_delta
from separatrix.mechanisms.load import mechanism_from
from separatrix.web.endpoints._base import (
    ENGINE_OPTION,
    SAMPLING_OPTIONS,
    ConstructionName,
    MechanismNames,
    Options,
    Words,
    endpoint,
    read_sampling,
    solve_without_draws,
)
from separatrix.web.workers import JSON, Reply, Report, Slow

MAX_FILE_NAME = 100
MAX_QUICK_WIDTH = 102
"""The number of firing thresholds to be found grows with d: up to this d, a proof takes a fifth of a second."""
DELTA_OPTION = {"delta": "P >= 1-delta distinguishes, P <= delta is blind."}
DEFAULT_DELTA = "0.01"


def require_options(options: Options) -> None:
    """Refuse an unknown engine, and sampling options that it does not use."""
    engine_named(options.get("engine", "auto")).refuse_unused(read_sampling(options))


def require_point(map_question: Question, first: Mapping[str, Number]) -> None:
    """Read the construction and the mechanism at the first value of each range."""
    map_question.mechanism(first)
    map_question.point(first)


def _check_verdict(construction: str, mechanisms: list[str], words: Words, options: Options) -> None:
    """Refuse wrong arguments of a verdict without computing it."""
    require_options(options)
    parse_delta(options.get("delta", DEFAULT_DELTA))
    kind = construction_named(construction)
    read_with_defaults(kind, all_parameters(words, {}, kind.schema.model_fields))
    for name in mechanisms:
        mechanism_from(name)


@endpoint(
    "/verdict/{construction}/{mechanisms:path}",
    Verdict | Verdicts.document_type(),
    options={**ENGINE_OPTION, **DELTA_OPTION, **SAMPLING_OPTIONS, "dtype": "Number format."},
)
def answer_verdict(
    construction: ConstructionName, mechanisms: MechanismNames, words: Words, options: Options, is_quick: bool
) -> Verdict | Verdicts:
    """What `separatrix verdict --json` prints."""
    engine, delta = options.get("engine", "auto"), options.get("delta", DEFAULT_DELTA)
    sampling = read_sampling(options)
    names = split_mechanisms(mechanisms)
    if not is_quick:
        subject = names if len(names) > 1 else mechanisms
        return verdict(construction, subject, words, engine=engine, delta=delta, sampling=sampling)
    _check_verdict(construction, names, words, options)
    if sampling.in_format:
        raise Slow
    verdicts: list[Verdict] = [
        solve_without_draws(engine, partial[Verdict](verdict, construction, name, words, delta=delta)) for name in names
    ]
    return verdicts[0] if len(verdicts) == 1 else Verdicts(tuple(verdicts))


PROOF_OPTIONS = {"from": "First n (default: n).", "verdict": "Verdict to prove.", **DELTA_OPTION}


@endpoint("/prove/{construction}/{mechanism:path}", Proof, options=PROOF_OPTIONS)
def prove_for_every_n(
    construction: ConstructionName, mechanism: MechanismNames, words: Words, options: Options, is_quick: bool
) -> Proof:
    """What `separatrix prove --json` prints: the verdict for every n, with d, m and all amplitudes fixed."""
    request = _read_proof_request(construction, mechanism, words, options)
    if is_quick and request.construction.parameters.complete_values().get("d", 0) > MAX_QUICK_WIDTH:
        raise Slow
    return request.compute()


@endpoint("/files/proof/{construction}/{mechanism:path}", options=PROOF_OPTIONS, files=(JSON,))
def certify_for_every_n(
    construction: ConstructionName, mechanism: MechanismNames, words: Words, options: Options
) -> Reply:
    """The file that `separatrix prove --certificate` writes, for `separatrix check`."""
    certificate = certify_proof(_read_proof_request(construction, mechanism, words, options).compute())
    return _certificate_reply(certificate, "proof", construction, mechanism)


def _read_proof_request(construction: str, mechanism: str, words: Words, options: Options) -> ProofRequest:
    delta = options.get("delta", DEFAULT_DELTA)
    return parse_proof_request(construction, mechanism, words, options.get("from"), delta, options.get("verdict"))


def _check_boundary(construction: str, mechanism: str, words: Words, options: Options) -> None:
    """Refuse wrong arguments of a boundary without searching for it."""
    require_options(options)
    parse_level(options.get("at", "0.5"))
    over = read_second_axis(options.get("over"), words)
    name, text, fixed = split_range(words, options.get("over"))
    map_question = question(construction, mechanism, fixed, (name, *over))
    first: dict[str, Number] = {name: search_span(map_question, name, text).start}
    for second, axis in over.items():
        first[second] = read_counted(map_question.schema_of(second), second, axis)[0].start
    require_point(map_question, first)


@endpoint(
    "/boundary/{construction}/{mechanism:path}",
    Boundary | BoundaryCurve,
    options={
        "at": "The level of P(tells apart).",
        "over": "A second parameter: gives a curve.",
        **ENGINE_OPTION,
        **SAMPLING_OPTIONS,
    },
)
def find_boundary(
    construction: ConstructionName,
    mechanism: MechanismNames,
    words: Words,
    options: Options,
    is_quick: bool,
    report: Report,
) -> Boundary | BoundaryCurve:
    """What `separatrix boundary --json` prints."""
    level, engine = options.get("at", "0.5"), options.get("engine", "auto")
    if is_quick:
        _check_boundary(construction, mechanism, words, options)
        if "over" in options:
            raise Slow
        return solve_without_draws(engine, partial(boundary, construction, mechanism, words, probability=level))
    return boundary(
        construction,
        mechanism,
        words,
        over=options.get("over"),
        probability=level,
        engine=engine,
        sampling=read_sampling(options),
        tell=lambda done, total, point: report({"what": point}),
    )


@endpoint("/files/certificate/{construction}/{mechanism:path}", options=DELTA_OPTION, files=(JSON,))
def certify_verdict(construction: ConstructionName, mechanism: MechanismNames, words: Words, options: Options) -> Reply:
    """The file that `separatrix verdict --certificate` writes, for `separatrix check`."""
    delta = options.get("delta", DEFAULT_DELTA)
    result = verdict(construction, mechanism, words, engine="certified", delta=delta)
    try:
        certificate = certify(result.construction, result.mechanism, result.delta)[1]
    except EngineRefusal as refused:
        raise UsageError(f"there is no certificate of this: {refused.reason}") from None
    return _certificate_reply(certificate, "certificate", construction, mechanism)


def _certificate_reply(certificate: dict[str, Any], *names: str) -> Reply:
    """Return a file named after these words."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "certificate.json"
        write_certificate(out, certificate)
        return Reply(out.read_bytes(), JSON, _file_name(*names))


def _file_name(*words: str) -> str:
    """Return a file name of letters that every system accepts.

    >>> _file_name("certificate", "spike", "power:beta=4")
    'certificate-spike-power-beta-4.json'
    """
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(words)).strip("-.")
    return f"{plain[:MAX_FILE_NAME]}.json"
