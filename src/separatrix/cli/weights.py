"""`weights`: weight matrices of linear attention on the spike, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from separatrix.cli import options
from separatrix.cli.progress import announced, working
from separatrix.cli.terminal import console, escape, escape_all, new_table, print_lines, show
from separatrix.core.numbers.spelling import for_people

if TYPE_CHECKING:
    from separatrix.analysis.weights import AmplitudeError, WeightChoice, Weights


def weights(
    construction: options.ConstructionName,
    mechanism: options.MechanismName,
    words: options.Words = None,
    theta: Annotated[
        str | None, Option(help="Strength of 11ᵀ in the weights with n (default: that of the best bound).")
    ] = None,
    eta: Annotated[
        str, Option(help="The robust weights have no negative score for amplitudes up to (1+eta) a1.")
    ] = "1/4",
    delta: options.DeltaOption = "0.01",
    as_json: options.AsJson = False,
) -> None:
    """Whether other weights would save linear attention on the spike, and the price.

    Compares weight matrices X: the attention on the spike, the margin and P of each as exact fractions, a bound
    for the family where one is proved, and P if the amplitude differs by 1 % from the one X was made for.

    \b
    Examples:
      separatrix weights spike linear
      separatrix weights spike linear n=1e9 d=1002 m=17
    """
    from separatrix.analysis.weights import weights as run

    construction, mechanism, parameters = options.read_question(weights, construction, mechanism, words)
    with announced("weights", "each weight matrix in exact fractions; seconds", as_json), working(as_json) as tell:
        result = run(construction, mechanism, parameters, theta=theta, eta=eta, delta=delta, progress=tell)
    show(result, as_json, lambda: _print(result))


def _print(result: Weights) -> None:
    """Print the table of weights, their formulas and bounds, and the statements."""
    from separatrix.constructions.reference import format_defaults_sentence

    terminal, softmax = console(), result.softmax
    terminal.print(f"linear on {result.construction.name} with other weight matrices X (exact fractions)")
    table = new_table("weights", "needs", "attention", "margin", "P", "verdict", gap=1)
    for choice in result.choices:
        attention, margin = for_people(float(choice.attention[1]), 4), for_people(float(choice.margin), 4)
        chance, needs = for_people(choice.distinguish, 4), ", ".join(choice.needs) or "–"
        table.add_row(*escape_all((choice.name, needs, attention, margin, chance, str(choice.verdict))))
    outcome = softmax.outcome
    reference = for_people(outcome.margin, 4), for_people(outcome.distinguish, 4), str(softmax.word)
    table.add_row("softmax, ones", "–", "–", *reference)
    terminal.print(table)
    terminal.print("P is P(tells apart); attention is that of the spike in its own row of D1", style="dim")
    for choice in result.choices:
        terminal.print(f"[bold]{choice.name}[/]: X = {escape(_describe(choice))}")
    print_lines([*result.sentences(), format_defaults_sentence(result.taken)])


def _describe(choice: WeightChoice) -> str:
    """Return the formula with its numbers, the price, the bound, and P if a1 is 1 % off."""
    numbers = ", ".join(f"{name} = {for_people(float(value))}" for name, value in choice.numbers.items())
    formula = f"{choice.weights}{f'; {numbers}' if numbers else ''}. Price: {choice.price}."
    off = " and ".join(_describe_error(error) for error in choice.if_amplitude_differs)
    proved = f" Proved: {choice.bound}." if choice.bound else ""
    return f"{formula}{proved} If D1 has another amplitude: {off}."


def _describe_error(error: AmplitudeError) -> str:
    chance = "no normaliser" if error.distinguish is None else f"P = {for_people(error.distinguish, 4)}"
    return f"{chance} at {for_people(float(error.factor))} a1"
