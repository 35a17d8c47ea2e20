"""Verdicts on several mechanisms at one point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

from separatrix.constructions import construction_named
from separatrix.core.documents import Document
from separatrix.core.parameters import UsageError, all_parameters, listed_mechanisms
from separatrix.core.result import Result, Row
from separatrix.exact.engines import EngineRefusal, Sampling
from separatrix.exact.verdicts.verdict import DELTA, OPTIONS, Verdict, VerdictRequest, parse_request


@dataclass(frozen=True)
class RefusedVerdict(Document):
    """A mechanism without an answer at this point, and the reason."""

    construction: str
    mechanism: str
    evidence: str
    verdict: Literal["none"] = "none"


@dataclass(frozen=True, repr=False)
class Verdicts(Result):
    """Verdicts on several mechanisms at one point; `verdicts["linear"]` is one of them."""

    kind: ClassVar[str] = "verdicts"
    items: ClassVar[tuple[str, Any] | None] = ("verdicts", Verdict | RefusedVerdict)
    verdicts: tuple[Verdict | RefusedVerdict, ...]

    @property
    def answers(self) -> tuple[Verdict, ...]:
        """The mechanisms that have an answer."""
        return tuple(item for item in self.verdicts if isinstance(item, Verdict))

    def __iter__(self) -> Iterator[Verdict | RefusedVerdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __getitem__(self, mechanism: str | int) -> Verdict | RefusedVerdict:
        if isinstance(mechanism, int):
            return self.verdicts[mechanism]
        return {name_of(item): item for item in self.verdicts}[mechanism]

    @property
    def summary(self) -> str:
        """The word for each mechanism, or how many have which where they are many."""
        kind = self.answers[0].construction.name
        words = {name_of(item): item.word if isinstance(item, Verdict) else "not computed" for item in self.verdicts}
        if len(words) > 4:
            counts = Counter(words.values()).most_common()
            return f"{len(words)} mechanisms on {kind}: {', '.join(f'{word} {k}' for word, k in counts)}"
        return f"{kind}: {', '.join(f'{name} {word}' for name, word in words.items())}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks on each mechanism, after its name."""
        return tuple(f"{answer.mechanism.spelled}: {remark}" for answer in self.answers for remark in answer.remarks)

    def rows(self) -> list[Row]:
        """Return one row for each mechanism with every parameter and the answer."""
        return [
            row
            for item in self.verdicts
            for row in (
                item.rows()
                if isinstance(item, Verdict)
                else [{**_parameters(self.answers[0]), **item.as_json(), "verdict": None}]
            )
        ]

    def notebook_rows(self) -> list[Row]:
        """Return the rows without the parameters, which are the same for all."""
        parameters = _parameters(self.answers[0]).keys() - {"mechanism"}
        return [{name: value for name, value in row.items() if name not in parameters} for row in self.rows()]


def name_of(answer: Verdict | RefusedVerdict) -> str:
    """Return the name of the mechanism."""
    return answer.mechanism.spelled if isinstance(answer, Verdict) else answer.mechanism


def _parameters(answer: Verdict) -> Row:
    (row,) = answer.rows()
    return {name: row[name] for name in answer.construction.parameters.complete_values()}


@overload
def verdict(
    construction: str,
    mechanism: list[Any] | tuple[Any, ...],
    parameters: Mapping[str, object] | None = None,
    *,
    engine: str = "auto",
    delta: object = DELTA,
    noise_sd: object = None,
    sampling: Sampling | None = None,
    **named: object,
) -> Verdicts: ...


@overload
def verdict(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    engine: str = "auto",
    delta: object = DELTA,
    noise_sd: object = None,
    sampling: Sampling | None = None,
    **named: object,
) -> Verdict: ...


def verdict(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    engine: str = "auto",
    delta: object = DELTA,
    noise_sd: object = None,
    sampling: Sampling | None = None,
    **named: object,
) -> Verdict | Verdicts:
    """Determine whether a mechanism tells the two labels of a construction apart at one point.

    **Arguments:**

    - `construction`: its name, such as `"spike"`.
    - `mechanism`: a name with its parameters (`"power:beta=4"`), `"module:attribute"` of your own, or the
      object itself. Several, as `"softmax,linear"` or a list, return `Verdicts`.
    - `parameters`, `named`: those of the construction, as a mapping or by name; `"0.1"` is exactly 1/10.
      Missing ones are taken from the reference point and listed in `taken` of the result.
    - `engine`: `"certified"`, `"closed"`, `"grouped"`, `"dense"`, or `"auto"`: the strongest that applies.
    - `delta`: how sure `distinguishes` and `blind` have to be.
    - `noise_sd`: adds the AUC under Gaussian noise of this standard deviation on the pre-activation.
    - `sampling`: how many draws, from which seed; for engines that sample.

    >>> result = verdict("spike", "softmax", n=1000, d=102, m=12, a0="0.01", a1="1.2", b="0.2", c="0.1")
    >>> result.word, round(result.outcome.distinguish, 6)
    ('distinguishes', 0.999755)
    >>> result = verdict("spike", "linear", n=10**6)
    >>> result.word, result.taken
    ('blind', {'d': 102, 'm': 12, 'a0': '0.01', 'a1': '1.2', 'b': '0.2', 'c': '0.1'})
    >>> verdict("spike", ["softmax", "linear"])
    <Verdicts: spike: softmax distinguishes, linear blind>
    """
    mechanisms = listed_mechanisms(mechanism)
    if not mechanisms:
        raise UsageError("name a mechanism, for example softmax")
    fields = construction_named(construction).schema.model_fields
    values = all_parameters(parameters, named, fields, OPTIONS)
    requests = [parse_request(construction, item, values, engine, delta, noise_sd) for item in mechanisms]
    if len(requests) == 1 and not isinstance(mechanism, list | tuple):
        return requests[0].compute(sampling)
    return compute_several(requests, sampling)


def compute_several(requests: Sequence[VerdictRequest], sampling: Sampling | None = None) -> Verdicts:
    """Compute several verdicts; raise an EngineRefusal if there is no answer for any mechanism."""
    answers: list[Verdict | RefusedVerdict] = []
    refusals = list[EngineRefusal]()
    for request in requests:
        try:
            answers.append(request.compute(sampling))
        except EngineRefusal as refusal:
            refusals.append(refusal)
            answers.append(RefusedVerdict(request.construction.name, request.mechanism.spelled, str(refusal)))
    if len(refusals) == len(answers):
        raise refusals[0]
    return Verdicts(tuple(answers))
