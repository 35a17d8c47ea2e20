"""Growth of a quantity with one parameter as chart, table and page."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import compress
from typing import Any

from separatrix.analysis.laws import NoScaling, Scaling, Scalings
from separatrix.core.errors import UsageError
from separatrix.core.numbers.spelling import RAISED, for_people
from separatrix.pages.charts import Chart, ChartAxis, Series, chart_page, draw_chart
from separatrix.pages.commands import spell_value
from separatrix.pages.looks import choose_looks
from separatrix.pages.maps.captions import describe_fixed, join_words
from separatrix.pages.maps.scales import axis_label
from separatrix.pages.paper import Axes

MAX_NAMED = 4
"""Mechanisms or laws that a heading names."""


def _scalings(result: Scaling | Scalings) -> tuple[Scaling, ...]:
    return result.scalings if isinstance(result, Scalings) else (result,)


def finding(result: Scaling | Scalings) -> str:
    """Return the law of each mechanism; of many mechanisms, how many have which law."""
    answers = _scalings(result)
    if len(answers) > MAX_NAMED:
        laws = Counter(describe_law(answer) for answer in answers)
        counts = ", ".join(f"{name} for {count}" for name, count in laws.most_common(MAX_NAMED))
        return f"{_title(answers[0])}: {counts} of {len(answers)} mechanisms"
    laws_of_each = "; ".join(_law_texts(answer)[1] for answer in answers)
    return f"The {answers[0].quantity} on {answers[0].question.construction} {laws_of_each}"


def sentences(result: Scaling | Scalings) -> list[str]:
    """Return the fixed parameters, the law of each mechanism, and the evidence."""
    answers = _scalings(result)
    refused = [row for row in result if isinstance(row, NoScaling)] if isinstance(result, Scalings) else []
    laws = [f"{x.question.label}: {describe_law(x)}; {x.law.reason}. {x.remark}".strip() for x in answers]
    proofs = [(answer.question.label, answer.proved) for answer in answers if answer.proved is not None]
    return [
        *describe_fixed(answers[0].question.fixed, answers[0].question.taken),
        *laws,
        *(f"{label}, proved {law.tag}: {law.statement}." for label, law in proofs),
        *(f"{row.mechanism}: {row.reason}." for row in refused),
        *dict.fromkeys(f"{answer.engine}: {answer.evidence}." for answer in answers),
    ]


def made_by(result: Scaling | Scalings) -> str:
    """Return the command that computes the result."""
    if isinstance(result, Scalings):
        construction, words = result.construction, result.parameters
        mechanisms = ",".join(row.mechanism for row in result)
    else:
        construction, mechanisms = str(result.question.construction), result.question.label
        values = ",".join(spell_value(value.x) for value in result.values)
        words = {result.parameter: values, **{name: spell_value(x) for name, x in result.question.fixed.items()}}
    return f"separatrix scaling {construction} {mechanisms} {join_words(words)} --of {result.quantity}"


def _title(answer: Scaling) -> str:
    return f"{answer.quantity} on {answer.question.construction} against {answer.parameter}"


def describe_law(answer: Scaling) -> str:
    """Return the law in a few words."""
    return _law_texts(answer)[0]


def _law_texts(answer: Scaling) -> tuple[str, str]:
    """Return the law in a few words, and as the end of a sentence about the mechanism."""
    law, subject = answer.law, f"for {answer.question.label}"
    form = f" ({law.form_name})" if law.form_name else ""
    if law.power_law is None:
        return "the points do not determine the law", f"grows by a law that these points do not determine {subject}"
    if not law.power_law:
        return f"not a power law{form}", f"follows no power law {subject}{form}"
    if law.form_name == "constant":
        return "constant", f"stays constant {subject}"
    parameter, exponent = answer.parameter, f"{law.exponent:.3f}".rstrip("0").rstrip(".")
    # Only whole exponents have characters of their own.
    short = f"exponent {exponent}" if "." in exponent else f"{parameter}{exponent.translate(RAISED)}"
    return short, f"goes like {parameter}^{exponent.replace('-', '−')} {subject}"


def chart(result: Scaling | Scalings) -> Chart:
    """Return the values of every mechanism on two logarithmic axes."""
    answers = _scalings(result)
    looks, first, series = choose_looks(answer.question.label for answer in answers), answers[0], []
    for answer in answers:
        mechanism, values = answer.question.label, answer.values
        low, high = ([value.ends[end] for value in values] for end in (0, 1))
        look = replace(looks[mechanism], label=f"{mechanism}: {describe_law(answer)}")
        line = Series(look, [float(value.x) for value in values], [value.y for value in values], mechanism)
        # Exact values have intervals of no width, which would be drawn as a band of nothing.
        series.append(line if low == high else replace(line, low=low, high=high, is_band=True))
    axes = ChartAxis(axis_label(first.parameter), log=True), ChartAxis(first.quantity, log=True)
    return Chart(*axes, series, height=440, title=_title(first))


def draw(result: Scaling | Scalings, axes: Axes) -> None:
    """Draw the chart on matplotlib axes."""
    draw_chart(axes, chart(result))
    axes.legend()


def table(result: Scaling | Scalings) -> dict[str, Any]:
    """Return the columns and rows of the page's table, without columns that repeat another one."""
    values = [(answer.question.label, value) for answer in _scalings(result) for value in answer.values]
    is_moved = any(value.n not in (None, value.x) for _, value in values)
    is_noisy = any(not value.ends[0] == value.y == value.ends[1] for _, value in values)
    visible = [True, True, is_moved, True, is_noisy, is_noisy]
    first = _scalings(result)[0]
    rows = [
        [name, spell_exactly(x.x), "" if x.n is None else spell_exactly(x.n), *map(for_people, (x.y, *x.ends))]
        for name, x in values
    ]
    columns = ["mechanism", first.parameter, "n used", first.quantity, "low", "high"]
    return {"columns": [*compress(columns, visible)], "rows": [[*compress(row, visible)] for row in rows]}


def spell_exactly(value: Any) -> str:
    """Return a value of the parameter, in short notation only where that loses no digit.

    >>> spell_exactly(10**9), spell_exactly(1234567), spell_exactly("1/3")
    ('10⁹', '1234567', '1/3')
    """
    is_short = isinstance(value, int) and int(float(f"{value:.6g}")) == value
    return for_people(value) if is_short else str(value)


def page(result: Scaling | Scalings) -> str:
    """Return the page: the chart and its numbers."""
    if not _scalings(result):
        reason = next(row.reason for row in result if isinstance(row, NoScaling))  # type: ignore[union-attr]
        raise UsageError(f"there is nothing to draw: {reason}")
    return chart_page(
        chart(result),
        title=finding(result),
        description="",
        sentences=sentences(result),
        **table(result),
        made_by=made_by(result),
    )
