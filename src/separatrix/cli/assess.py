"""`assess`: the report card of a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from separatrix.cli import supervisor
from separatrix.cli.cards import print_costs
from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced, say_line, working
from separatrix.cli.terminal import COLOURS, console, escape, new_table, show
from separatrix.core.numbers.json import json_text

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.analysis.cards.card import Card
    from separatrix.pages.standings import StandingText

FORMAT_CHECK = "form_in_16_bits"
"""The check that is skipped for a mechanism that does not run in 16 bits, which deserves a line."""
MAX_NAMED_CHECKS = 6
"""Checks that are named where one fault prevents others from being tried."""
CHECK_SECONDS, STEP_SECONDS = 120, 600
"""The default time limits of a check of the contract, and of any other step."""


def assess(
    mechanism: Annotated[str, Argument(help="A name, or module:attribute of your own.")],
    against: Annotated[str, Option(help="Comma-separated mechanisms to compare with.")] = "",
    quick: Annotated[bool, Option("--quick", help="Run only the contract, in seconds.")] = False,
    width: Annotated[int | None, Option(help="Head width that your own mechanism requires.", min=1)] = None,
    heads: Annotated[int | None, Option(help="Number of heads that your own mechanism requires.", min=1)] = None,
    scale: Annotated[
        str | None,
        Option(
            help="Multiply the queries of your own mechanism by this number, or by sqrt or width, which undo "
            "a hidden 1/sqrt(width) or 1/width."
        ),
    ] = None,
    seed: Annotated[
        int | None, Option(help="Seed for the initial weights of your own class.", show_default="0")
    ] = None,
    out: Annotated[Path | None, Option(help="Write the card as a page: card.html.")] = None,
    timeout: Annotated[
        float | None,
        Option(
            metavar="SECONDS",
            min=1,
            help="Stop when one check, construction or measurement takes longer.",
            show_default=f"{CHECK_SECONDS} for a check, {STEP_SECONDS} for other steps",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report card: contract, verdicts, similar mechanisms, cost.

    The contract is printed as soon as it is known; --quick stops there. Sizes of your own mechanism are found
    in it or given as options. A class takes its arguments after a colon: mine:Module:dim=64.

    Ctrl-C ends the command early; the results so far are printed and written as an unfinished card.

    Your code runs in a separate process. If it crashes, exits or exceeds --timeout, the card names the check
    or construction and keeps the earlier results.

    Exit code 0: the contract is kept. 1: it is broken, or the mechanism raised an error, crashed, exited or
    took too long; the card names the check. 2: there is nothing to assess (no such module or attribute, it
    does not import, it cannot be called with q, k and v).

    \b
    Examples:
      separatrix assess mine.py:attend --quick
      separatrix assess mine.py:Attention:dim=64 --against softmax,linear
    """
    from separatrix.analysis.cards.assessment import assess as compute
    from separatrix.core.files.writing import require_writable
    from separatrix.core.parameters import split_mechanisms
    from separatrix.mechanisms.load import mechanism_from
    from separatrix.pages.card import SUFFIXES

    updates: list[Card] = []
    interrupt = None

    def on_update(card: Card) -> None:
        updates.append(card)
        if len(updates) == 1 and not as_json:
            _print_contract(console(), card)
        elif len(updates) > 1 and len(card.constructions) > len(updates[-2].constructions):
            say_line(_describe_last(card))
        supervisor.report(if_interrupted=_prepare(card, as_json, True, out))

    def on_crash(card_for: Callable[[str], Card]) -> None:
        # Prepared in advance: a process that dies cannot write its card, but its parent can.
        supervisor.report(if_dead=_prepare(card_for(supervisor.CAUSE), as_json, bool(updates), out))

    steps = "contract, constructions, similar mechanisms, cost; about a minute each"
    with announced("assess", "the contract, about 10 s" if quick else steps, as_json):
        if out is not None:
            require_writable(out, SUFFIXES)
        # The import runs the user's code, so it gets a time limit like a check.
        supervisor.report(step=f"{mechanism}: import", seconds=timeout or CHECK_SECONDS)
        subject = mechanism_from(mechanism, width=width, heads=heads, scale=scale, seed=seed)
        comparisons = [mechanism_from(name) for name in split_mechanisms(against)]
        try:
            with working(as_json) as say:

                def tell(step: str) -> None:
                    supervisor.report(step=step, seconds=timeout or (STEP_SECONDS if updates else CHECK_SECONDS))
                    say(step)

                card = compute(subject, comparisons, tell, quick=quick, on_update=on_update, on_crash=on_crash)
        except KeyboardInterrupt as error:
            if not updates:  # nothing is known yet that could be shown
                raise
            card, interrupt = updates[-1], error
        if out is not None:
            card.save(out)
    show(card, as_json, lambda: _print_results(console(), card))
    if interrupt is not None:
        raise interrupt
    raise Exit(0 if card.holds else 1)


def _prepare(card: Card, as_json: bool, has_printed_contract: bool, out: Path | None) -> dict[str, str]:
    """Render a card for the parent process, which prints and writes it if this process dies."""
    from separatrix.pages.plots import content

    if not supervisor.is_child():
        return {}
    if as_json:
        rendering = {"answer": f"{json_text(card.as_json())}\n"}
    else:
        terminal = console()
        with terminal.capture() as capture:
            if not has_printed_contract:
                _print_contract(terminal, card)
            _print_results(terminal, card)
        rendering = {"answer": capture.get()}
    if out is not None:
        rendering |= {"path": str(out.absolute()), "file": content(card, out.suffix).decode()}
    return rendering


def _describe_last(card: Card) -> str:
    """Describe the last result of an unfinished card, and the progress."""
    from separatrix.analysis.cards.construction_result import NoConstructionResult, reference_points
    from separatrix.exact.verdicts.verdict import chance_of

    name, result = [*card.constructions.items()][-1]
    answer = "no answer"
    if not isinstance(result, NoConstructionResult):
        answer = f"{result.word}, {chance_of(result.verdict.outcome, 4)}"
    return f"{name}: {answer} ({len(card.constructions)} of {len(reference_points())})"


def _print_contract(out: Console, card: Card) -> None:
    """Print the mechanism, notes on the way it is called, and the result of the contract."""
    mechanism, calling, contract = card.mechanism, card.calling, card.contract
    out.print(f"[bold]{escape(mechanism.spelled)}[/]  {escape(mechanism.formula)}")
    if calling.scale_words:
        out.print(f"[bold yellow]{escape(calling.scale_words)}[/]")
    for note in calling.notes:
        out.print(escape(note), style="dim")
    counts = {
        "kept": len(contract.passed),
        "broken": len(contract.failed),
        "not tried": len(contract.not_tried),
        "does not apply" if len(contract.skipped) == 1 else "do not apply": len(contract.skipped),
    }
    texts = (f"{count} {word}" for word, count in counts.items() if count or word != "not tried")
    out.print(f"contract: {', '.join(texts)}")
    for name, fault in contract.failed.items():
        out.print(f"  [red]broken[/] {escape(name)}: {escape(fault)}")
    if reason := contract.skipped.get(FORMAT_CHECK):
        out.print(f"  {escape(reason)}", style="yellow")
    for name, checks in _group_by_message(contract.not_tried).items():
        more = f" and {len(checks) - MAX_NAMED_CHECKS} more" if len(checks) > MAX_NAMED_CHECKS else ""
        names = ", ".join(checks[:MAX_NAMED_CHECKS])
        out.print(f"  not tried, since {escape(name)} failed: {escape(names)}{more}", style="dim")


def _print_results(out: Console, card: Card) -> None:
    """Print the card without the contract, which was printed before."""
    from separatrix.analysis.cards.construction_result import NoConstructionResult

    if card.progress_sentence:
        out.print(f"[bold yellow]{escape(card.progress_sentence)}[/]")
    elif card.quick or not card.constructions:
        out.print(escape(card.reading))
    if card.quick or not card.constructions:
        return
    for sentence in card.sentences:
        out.print(escape(sentence))
    for row_card in (card, *card.against):
        results = row_card.constructions.items()
        reasons = {name: result.evidence for name, result in results if isinstance(result, NoConstructionResult)}
        for reason, names in _group_by_message(reasons).items():
            names_text = "any construction" if len(names) == len(results) else ", ".join(names)
            name = escape(row_card.mechanism.spelled)
            out.print(f"[red]{name} has no answer[/] on {names_text}: {escape(reason)}")
    out.print()
    _print_constructions(out, card)
    print_costs(out, [row_card.cost for row_card in (card, *card.against)], card.softmax_cost)


def _print_constructions(out: Console, card: Card) -> None:
    """Print constructions as rows, failures first, and mechanisms as columns."""
    from separatrix.pages.standings import sort_worst_first
    from separatrix.pages.verdict_words import MARKS_LEGEND

    columns = [row_card for row_card in card.against if row_card.constructions]
    names = [escape(row_card.mechanism.spelled) for row_card in columns]
    table = new_table("construction", "verdict", "P", "blind from", "margin", *names, gap=1)
    for name, (cell, *cells) in sort_worst_first(card, columns):
        start = "–" if cell.blind_from.startswith("none") else cell.blind_from
        table.add_row(escape(name), _colour_word(cell), cell.p, start, cell.law, *map(_colour_word, cells))
    out.print(table)
    out.print(f"distinguishes: P ≥ 0.99; blind: P ≤ 0.01; P is {MARKS_LEGEND}", style="dim")
    out.print("– not blind at any length searched; the page has the lengths, and bits", style="dim")
    out.print()


def _colour_word(cell: StandingText) -> str:
    return f"[{COLOURS[cell.word]}]{cell.word}[/]"


def _group_by_message(messages: dict[str, str]) -> dict[str, list[str]]:
    """Return the names that share a message, apart from the call in it; the first call is kept."""
    groups: dict[str, tuple[str, list[str]]] = {}
    for name, message in messages.items():
        groups.setdefault(message.partition("; called with ")[0], (message, []))[1].append(name)
    return dict(groups.values())
