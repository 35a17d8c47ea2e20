"""Tables of a report: the comparison of two sweeps, and the cells without an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from separatrix.pages.pages import Section, render_section, shorten_text
from separatrix.pages.store.stored_cells import StoredCells, decode_parameters
from separatrix.pages.store.texts import join_parameters
from separatrix.sweeps.store import Sweep
from separatrix.sweeps.store.compare import TOLERANCE, Change, Comparison, SweepAnswer

MAX_CHANGES, MAX_MESSAGES = 30, 100
MAX_MECHANISMS = 4
"""Mechanisms that one row names."""


def changes_section(comparison: Comparison, sweep: Sweep, other_sweep: Sweep, command: str) -> Section:
    """Return the changes from `other` to `sweep`, the sweep of the page."""
    names = [f"{named_sweep.name} {named_sweep.id}" for named_sweep in (sweep, other_sweep)]
    return render_section(
        "changes",
        "Comparison of two sweeps",
        "sweep_changes.html.j2",
        names=names,
        close=f"{TOLERANCE:g}",
        counts=comparison.describe_counts(*names),
        rows=[_change_row(change, comparison.common) for change in comparison.largest[:MAX_CHANGES]],
        changed=comparison.changed,
        common=join_parameters(comparison.common),
        line=command,
    )


def _change_row(change: Change, common: Mapping[str, str]) -> tuple[Any, ...]:
    words = {name: value for name, value in change.request.items() if name not in common}
    p, q = change.one.distinguish, change.other.distinguish
    difference = "–" if p is None or q is None else f"{p - q:+.4g}".replace("-", "−")
    cell = (change.mechanism, change.construction, join_parameters(words))
    return cell, _describe_answer(change.one), _describe_answer(change.other), difference


def _describe_answer(answer: SweepAnswer) -> tuple[str, str]:
    """Return the verdict and its evidence."""
    if answer.distinguish is None or answer.low is None or answer.high is None:
        return answer.word, ""
    interval = "" if answer.low == answer.high else f", sampled, in [{answer.low:.4g}, {answer.high:.4g}]"
    return answer.word, f"P = {answer.distinguish:.6g}{interval}; engine {shorten_text(answer.engine, 40)}"


def refused_section(report_cells: StoredCells, results_command: str) -> Section | None:
    """Return one row for each message of cells without an answer; None where every cell has one."""
    messages = (
        report_cells.distinct.filter(pl.col("status") != "done")
        .group_by("status", "message", maintain_order=True)
        .agg(
            cells=pl.len(),
            mechanisms=pl.col("mechanism").unique(maintain_order=True),
            **{name: pl.col(name).first() for name in ("construction", "mechanism", "parameters", "asked")},
        )
        .sort("cells", descending=True, maintain_order=True)
    )
    if messages.is_empty():
        return None
    return render_section(
        "refused",
        "Refused and failed",
        "sweep_refused.html.j2",
        rows=[_message_row(row) for row in messages.head(MAX_MESSAGES).iter_rows(named=True)],
        left=messages.height - MAX_MESSAGES,
        line=f"{results_command} status=refused,failed",
    )


def _message_row(row: dict[str, Any]) -> tuple[str, ...]:
    names, engine = row["mechanisms"], f" --engine {shorten_text(row['asked'], 40)}" if row["asked"] else ""
    more = f" and {len(names) - MAX_MECHANISMS:,} more" if len(names) > MAX_MECHANISMS else ""
    parameters = join_parameters(decode_parameters(row["parameters"]))
    return (
        shorten_text(row["message"]) or "no message",
        shorten_text(row["status"], 40),
        f"{row['cells']:,}",
        shorten_text(", ".join(names[:MAX_MECHANISMS]), 120) + more,
        f"{shorten_text(row['construction'], 60)} {shorten_text(row['mechanism'], 60)} {parameters}{engine}",
    )
