"""`assess`: the report card of a mechanism, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli import supervisor
from separatrix.cli.cards import print_costs
from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced, say_line, working
from separatrix.cli.terminal import COLOURS, console, escape, new_table, show
from separatrix.core.numbers.json import json_text

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.analysis.cards import Calling, Card
    from separatrix.contract import Examination
    from separatrix.pages.standings import ShownStanding

QUICK = "the contract, about 10 s"
WHOLE = "contract, constructions, likeness, cost: about a minute a mechanism"
FORMATS = "form_in_16_bits"
"""The check that does not apply to what does not run in 16 bits, which is worth a line."""
MOST_NAMED = 6
"""Checks that are named where one fault keeps others from being tried."""
CHECK_SECONDS, STEP_SECONDS = 120, 600
"""Seconds that a check of the contract, and any other step, may take unless --timeout is given."""
WORDS = {
    "distinguishes": "tells",
    "partial": "some",
    "blind": "blind",
    "saturated": "satur",
    "undecided": "open",
    "none": "–",
}
"""Verdicts in a column of five letters."""


def assess(
    mechanism: Annotated[str, typer.Argument(help="A name, or module:attribute of your own.")],
    against: Annotated[str, typer.Option(help="Mechanisms to compare with, separated by commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="The contract alone, in seconds.")] = False,
    width: Annotated[
        int | None, typer.Option(help="Your own: the width of a head that it takes.", min=1)
    ] = None,
    heads: Annotated[
        int | None, typer.Option(help="Your own: the number of heads that it takes.", min=1)
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Your own: multiply queries by this number, or by sqrt or width, which undo a hidden "
            "1/sqrt(width) or 1/width."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Your own: of weights that are drawn where a class is made.", show_default="0"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the card as a page: card.html.")] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Give up when one check, construction or measurement takes longer.",
            show_default=f"{CHECK_SECONDS} for a check, {STEP_SECONDS} for the rest",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report card: contract, verdicts, likeness, cost.

    The contract comes first and is shown at once; --quick stops there. Your own is called as it was made:
    sizes are found in it or given, and a class is made with words, mine:Module:dim=64.

    Ctrl-C ends it early: what is known by then is printed and written as a card that is not finished.

    Your code runs in a process of its own: if that crashes, exits or takes longer than --timeout, the card
    names the check or construction, and keeps what was known before.

    Exit code 0: the contract is kept; 1: it is broken, or the mechanism raised, crashed, exited or took too
    long on the way, and the card names the check; 2: there is nothing to assess (no such module or
    attribute, it does not import, it cannot be called with q, k and v).

    \b
    Examples:
      separatrix assess mine.py:attend --quick
      separatrix assess mine.py:Attention:dim=64 --against softmax,linear
    """
    with announced("assess", QUICK if quick else WHOLE, as_json):
        how = {"width": width, "heads": heads, "scale": scale, "seed": seed}
        found, interrupt = _assessed(mechanism, against, quick, how, out, as_json, timeout)
    show(found, as_json, lambda: _view(console(), found))
    if interrupt is not None:
        raise interrupt
    raise typer.Exit(0 if found.holds else 1)


def _assessed(
    mechanism: str,
    against: str,
    quick: bool,
    how: Mapping[str, Any],
    out: Path | None,
    as_json: bool,
    timeout: float | None,
) -> tuple[Card, KeyboardInterrupt | None]:
    """The card, which is written to `out`, and what ended it early; its contract is printed when known."""
    from separatrix.analysis.cards import assess as run
    from separatrix.core.files.writing import require_writable
    from separatrix.core.parameters import split_mechanisms
    from separatrix.mechanisms.load import mechanism_from
    from separatrix.pages import card

    if out is not None:
        require_writable(out, card.ENDINGS)
    supervisor.report(step=f"{mechanism}: import", seconds=timeout or CHECK_SECONDS)
    one = mechanism_from(mechanism, **how)
    others = [mechanism_from(name) for name in split_mechanisms(against)]
    known: list[Card] = []

    def so_far(found: Card) -> None:
        known.append(found)
        if len(known) == 1 and not as_json:
            _contract_view(console(), found.calling, found.contract)
        elif len(known) > 1 and len(found.standings) > len(known[-2].standings):
            say_line(f"{found.standings[-1].name}: {_short(found)}")
        supervisor.report(known=_prepare(found, as_json, True, out))

    def if_ended(card_for: Callable[[str], Card]) -> None:
        prepared = _prepare(card_for(supervisor.CAUSE), as_json, bool(known), out)
        supervisor.report(if_dead=prepared)

    interrupt = None
    try:
        with working(as_json) as say:

            def tell(step: str) -> None:
                limit = STEP_SECONDS if known else CHECK_SECONDS
                supervisor.report(step=step, seconds=timeout or limit)
                say(step)

            found = run(one, others, tell, quick=quick, so_far=so_far, if_ended=if_ended)
    except KeyboardInterrupt as ended:
        if not known:
            raise
        found, interrupt = known[-1], ended
    if out is not None:
        card.write(found, out)
    return found, interrupt


def _prepare(found: Card, as_json: bool, contract_shown: bool, out: Path | None) -> dict[str, str]:
    """A card as it would be shown and written, for the process that shows it if this one dies."""
    from separatrix.pages import card

    if not supervisor.is_child():
        return {}
    if as_json:
        prepared = {"answer": f"{json_text(found.as_json())}\n"}
    else:
        terminal = console()
        with terminal.capture() as capture:
            if not contract_shown:
                _contract_view(terminal, found.calling, found.contract)
            _view(terminal, found)
        prepared = {"answer": capture.get()}
    if out is not None:
        prepared |= {"path": str(out.absolute()), "file": card.content(found, out.suffix).decode()}
    return prepared


def _short(found: Card) -> str:
    """The last answer of a card that grows, and how far it is."""
    from separatrix.analysis.cards import Unanswered
    from separatrix.analysis.cards.standing import points
    from separatrix.exact.verdicts.verdict import chance_of

    last = found.standings[-1]
    said = (
        "no answer" if isinstance(last, Unanswered) else f"{last.word}, {chance_of(last.verdict.outcome, 4)}"
    )
    return f"{said} ({len(found.standings)} of {len(points())})"


def _contract_view(out: Console, calling: Calling, contract: Examination) -> None:
    """Print what a mechanism is, how it is called and what it keeps of the contract."""
    out.print(f"[bold]{escape(calling.mechanism.spelled)}[/]  {escape(calling.mechanism.formula)}")
    if calling.scale_words:
        out.print(f"[bold yellow]{escape(calling.scale_words)}[/]")
    for note in calling.notes:
        out.print(escape(note), style="dim")
    counted = {
        "kept": len(contract.passed),
        "broken": len(contract.failed),
        "not tried": len(contract.not_tried),
        "does not apply" if len(contract.skipped) == 1 else "do not apply": len(contract.skipped),
    }
    shown = (f"{count} {word}" for word, count in counted.items() if count or word != "not tried")
    out.print(f"contract: {', '.join(shown)}")
    for name, what in contract.failed.items():
        out.print(f"  [red]broken[/] {escape(name)}: {escape(what)}")
    if why := contract.skipped.get(FORMATS):
        out.print(f"  {escape(why)}", style="yellow")
    for name, untried in _by_message(contract.not_tried).items():
        more = f" and {len(untried) - MOST_NAMED} more" if len(untried) > MOST_NAMED else ""
        named = ", ".join(untried[:MOST_NAMED])
        out.print(f"  not tried, since {escape(name)} failed: {escape(named)}{more}", style="dim")


def _view(out: Console, found: Card) -> None:
    """Print the rest of a report card; the contract was printed when it was known."""
    from separatrix.analysis.cards import Unanswered

    if found.unfinished:
        out.print(f"[bold yellow]{escape(found.unfinished)}[/]")
    elif found.quick or not found.standings:
        out.print(escape(found.reading))
        return
    if not found.standings:
        return
    for sentence in (
        found.contract_words,
        found.standing,
        found.scale_words,
        found.likeness,
        found.cost_words,
    ):
        if sentence:
            out.print(escape(sentence))
    for each in (found, *found.against):
        unanswered = {cell.name: cell.why for cell in each.standings if isinstance(cell, Unanswered)}
        for what, names in _by_message(unanswered).items():
            where = "any construction" if len(names) == len(each.standings) else ", ".join(names)
            out.print(f"[red]{escape(each.mechanism.spelled)} has no answer[/] on {where}: {escape(what)}")
    out.print()
    _standings(out, found)
    print_costs(out, [each.cost for each in (found, *found.against)], found.softmax_cost)


def _standings(out: Console, found: Card) -> None:
    """Print the constructions as rows, what it fails on first, and mechanisms as columns."""
    from separatrix.pages.standings import worst_first
    from separatrix.pages.verdict_words import MARKED

    others = [each for each in found.against if each.standings]
    seen = others[: max(1, (out.width - 52) // 10)]
    wide = len(seen) <= 2
    titles = ("construction", "verdict", "P", "blind from", *(("margin",) if wide else ()))
    table = new_table(*titles, pad_edge=False)
    for each in seen:
        table.add_column(escape(each.mechanism.spelled), overflow="fold", max_width=10)
    for name, cells in worst_first(found, seen):
        own = cells[0]
        start = "–" if own.blind_from.startswith("none") else own.blind_from
        details = (own.p, start, *((own.law,) if wide else ()))
        table.add_row(escape(name), _word(own), *details, *map(_word, cells[1:]))
    out.print(table)
    left = [escape(each.mechanism.spelled) for each in others[len(seen) :]]
    if left:
        out.print(f"{', '.join(left)}: on the page (--out card.html) and in --json", style="dim")
    out.print(f"tells: P ≥ 0.99; blind: P ≤ 0.01; P is {MARKED}", style="dim")
    out.print("– no length found from which on it is blind; how far, and bits, are on the page", style="dim")
    out.print()


def _word(cell: ShownStanding) -> str:
    return f"[{COLOURS[cell.word]}]{WORDS[cell.word]}[/]"


def _by_message(messages: dict[str, str]) -> dict[str, list[str]]:
    """The names that share a message, but for the call in it: it is said once, with the first call."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name, message in messages.items():
        found.setdefault(message.partition("; called with ")[0], (message, []))[1].append(name)
    return dict(found.values())
