"""report.html: one file with everything in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

import polars as pl

from separatrix import __version__
from separatrix.reports.maps.captions import READER
from separatrix.reports.markup import Section
from separatrix.reports.store.pieces import command, evidence, short
from separatrix.reports.store.sheet import Sheet
from separatrix.reports.store.style import STYLE
from separatrix.reports.template import PAGE, POLICY, SCRIPT
from separatrix.reports.template import STYLE as SHARED_STYLE

LONGEST_PLAN = 20_000
MOST_SHOWN = 6
"""Hosts, engines or sets of versions that are named."""
NO_SCRIPT = (
    "<noscript><p>The plots need scripts; every number is in results.csv and results.parquet.</p></noscript>"
)


def render(sheet: Sheet, sections: Sequence[Section], made_by: str, results: str) -> str:
    """The page as text."""
    from plotly.offline import get_plotlyjs

    links = "".join(f'<a href="#{each.name}">{escape(each.title)}</a> ' for each in sections)
    body = "\n".join(
        (
            f"<h1>{short(sheet.title, 120)}</h1>",
            _lead(sheet),
            f"<nav>{links}</nav>",
            _facts(sheet),
            f"<p>{escape(READER)}</p>{NO_SCRIPT}",
            command(made_by, "this page"),
            command(results, "its cells"),
            _origin(sheet),
            *(
                f'<section id="{each.name}"><h2>{escape(each.title)}</h2>\n{each.body}</section>'
                for each in sections
            ),
            f"<footer>separatrix {escape(__version__)}. The same cells as tables: "
            '<a href="results.csv">results.csv</a>, <a href="results.parquet">results.parquet</a>.</footer>',
        )
    )
    return PAGE.substitute(
        title=short(sheet.title, 120),
        policy=POLICY,
        style=SHARED_STYLE + STYLE,
        body=body,
        library=get_plotlyjs(),
        script=SCRIPT,
    )


def _lead(sheet: Sheet) -> str:
    cells = sheet.distinct
    when = "" if sheet.sweep is None else f"Started {_date(sheet.sweep.started)}. "
    known = evidence(cells)
    counted = (
        f"P is known for {cells['p'].count():,} cells: {known}." if known else "No cell has an answer yet."
    )
    return f'<p class="lead">{short(when)}{counted}</p>'


def _date(text: str) -> str:
    """2026-11-16T02:59:26+00:00 as one reads it; anything else as it is.

    >>> _date("2026-11-16T02:59:26+00:00"), _date("yesterday")
    ('2026-11-16 02:59 UTC', 'yesterday')
    """
    return f"{text[:10]} {text[11:16]} UTC" if text[10:11] == "T" and text.endswith("+00:00") else text


def _facts(sheet: Sheet) -> str:
    cells = sheet.distinct
    ended = dict(cells.group_by("status").len().iter_rows())
    counts = {name: ended.pop(name, 0) for name in ("done", "refused", "failed")}
    shown = [(name, f"{count:,}") for name, count in counts.items()]
    shown += [(f"ended as “{name}”", f"{count:,}") for name, count in ended.items()]
    shown += [("not finished yet", f"{sheet.unfinished:,}")] if sheet.unfinished else []
    shown += [("computing time", duration(float(cells["seconds"].sum())))]
    facts = "".join(f"<div><dt>{short(term, 60)}</dt><dd>{short(value)}</dd></div>" for term, value in shown)
    where = f"Engines: {_listed(cells['engine'])}. Hosts: {_listed(cells['host'])}."
    return f'<dl class="facts">{facts}</dl><p class="said">{short(where)}</p>'


def _listed(values: pl.Series) -> str:
    names = values.drop_nulls().unique(maintain_order=True).to_list()
    more = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more or "–"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them.

    >>> duration(2.58), duration(200), duration(9000), duration(1e6)
    ('2.58 s', '3.33 min', '2.5 h', '278 h')
    """
    for length, unit in ((3600, "h"), (60, "min")):
        if seconds >= length:
            return (
                f"{seconds / length:,.3g} {unit}"
                if seconds < 1000 * length
                else f"{seconds / length:,.0f} {unit}"
            )
    return f"{seconds:.3g} s"


def _origin(sheet: Sheet) -> str:
    """Versions and the plan, folded."""
    versions = sheet.versions
    spelled = "".join(f"<li>{short(each)}</li>" for each in map(_versions, versions[:MOST_SHOWN]))
    more = f"<li>and {len(versions) - MOST_SHOWN:,} more</li>" if len(versions) > MOST_SHOWN else ""
    made = f"<details><summary>Versions</summary><ul>{spelled}{more}</ul></details>" if versions else ""
    if sheet.sweep is None:
        return made
    plan = short(sheet.sweep.plan, LONGEST_PLAN)
    return f"<details><summary>The plan</summary><pre>{plan}</pre></details>{made}"


def _versions(text: str) -> str:
    found = json.loads(text)
    if not isinstance(found, dict):
        return text
    return ", ".join(f"{name} {version}" for name, version in found.items())


def present(sections: Iterable[Section | None]) -> list[Section]:
    """Drop empty sections."""
    return [section for section in sections if section is not None]
