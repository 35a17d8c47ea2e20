"""`verdict`: the probability that a mechanism distinguishes the two labels of a construction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option, echo

from separatrix.cli import options
from separatrix.cli.progress import announced, drawing
from separatrix.cli.terminal import WRITTEN, show

ANNOUNCEMENT = "P(tells apart) at this point; seconds, or minutes where signs are drawn"


def verdict(
    construction: options.ConstructionName,
    mechanisms: options.MechanismNames,
    words: options.Words = None,
    engine: options.EngineName = "auto",
    certificate: Annotated[Path | None, Option(help="Write a certificate of the exact answer here.")] = None,
    delta: options.DeltaOption = "0.01",
    noise: Annotated[str | None, Option(help="Also the AUC under Gaussian noise of this sd, in margin units.")] = None,
    draws: options.DrawsOption = 400,
    seed: options.SeedOption = 0,
    confidence: options.ConfidenceOption = 0.95,
    dtype: Annotated[str, Option(help="float64, float32, float16 or bfloat16, for dense and grouped.")] = "float64",
    out: Annotated[Path | None, Option(help="Write the result: .png, .svg, .pdf, .csv, .parquet or .json.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Does a mechanism tell the two labels of CONSTRUCTION, D0 and D1, apart?

    Parameters that are not given take the values of the construction's reference point. Several mechanisms
    are shown side by side.

    \b
    Examples:
      separatrix verdict spike softmax,linear
      separatrix verdict spike softmax n=1e18 a1=1.1 --certificate proof.json
    """
    from separatrix.cli.verdict_tables import print_verdict, print_verdicts
    from separatrix.core.files.writing import require_distinct, require_writable
    from separatrix.core.parameters import UsageError, split_mechanisms
    from separatrix.exact.engines import EngineRefusal, Sampling, engine_named
    from separatrix.exact.verdicts import certify, write_certificate
    from separatrix.exact.verdicts.several import compute_several
    from separatrix.exact.verdicts.verdict import parse_request

    construction, mechanisms, parameters = options.read_question(verdict, construction, mechanisms, words)
    names = split_mechanisms(mechanisms) or [mechanisms]
    sampling = Sampling(draws, seed, confidence, dtype)
    if certificate is not None:
        if not engine_named(engine).covers("certified"):
            raise UsageError(f"only the certified engine writes certificates; leave out --engine {engine}")
        if len(names) > 1:
            raise UsageError(f"a certificate is of one mechanism, not of {len(names)}; ask for each by itself")
        engine = "certified"
        require_writable(certificate)
        require_distinct(certificate=certificate, out=out)
    engine_named(engine).refuse_unused(sampling)
    options.require_output(out, "verdict")
    # Everything is parsed before anything is computed, so that errors appear at once.
    requests = [parse_request(construction, name, parameters, engine, delta, noise) for name in names]
    with announced("verdict", ANNOUNCEMENT, as_json), drawing(as_json) as progress:
        sampling = replace(sampling, told=progress)
        if len(requests) > 1:
            verdicts = compute_several(requests, sampling)
            show(verdicts, as_json, lambda: print_verdicts(verdicts), out)
            return
        result = requests[0].compute(sampling)
        if certificate is not None:
            try:
                document = certify(result.construction, result.mechanism, result.delta)[1]
            except EngineRefusal as refusal:
                raise UsageError(f"{refusal.reason}; leave out --certificate") from None
            write_certificate(certificate, document)
    show(result, as_json, lambda: print_verdict(result), out)
    if certificate is not None and not as_json:
        echo(f"{WRITTEN} {certificate}")
