"""Answers of tasks and scores of their shortcuts, computed again by literal rules on the tokens."""

from collections import Counter
from collections.abc import Callable
from itertools import product
from statistics import median_low

import mpmath
import numpy as np
import pytest
from scipy.special import softmax

from separatrix.core.errors import UsageError
from separatrix.mechanisms import mechanism_named
from separatrix.training.tasks import Samples, Split, Task, task_named
from separatrix.training.tasks._shifted import log_norm_ratio
from separatrix.training.tasks.listops import _one_list_values


def draw_samples(name: str, count: int = 60, split: Split = Split.TEST, **parameters: object) -> tuple[Task, Samples]:
    task = task_named(name).read(parameters)
    return task, task.samples(count, split)


def floor_score(task: Task, samples: Samples) -> float:
    return task.floor(samples).score


def test_induction_answers_with_the_symbol_that_followed() -> None:
    task, samples = draw_samples("induction", 2000, n=20, symbols=6)
    correct = 0
    for tokens, (target,) in zip(samples.inputs.tolist(), samples.targets, strict=True):
        *context, last = tokens
        assert context.count(last) == 1
        assert context[context.index(last) + 1] == target
        counts = Counter(symbol for symbol in context if symbol != last)
        correct += target == min(counts, key=lambda symbol: (-counts[symbol], symbol))
    assert floor_score(task, samples) == pytest.approx(correct / 2000)
    proved = task.proved_ceiling(mechanism_named("softmax"), task.default_setting(conv=0))
    assert proved is not None
    assert proved.score == pytest.approx(correct / 2000, abs=0.04)
    assert task.proved_ceiling(mechanism_named("softmax"), task.default_setting()) is None


@pytest.mark.parametrize("blanks", [0, 2])
def test_copy_repeats_the_symbols_and_its_shortcut_uses_only_neighbours(blanks: int) -> None:
    task, samples = draw_samples("copy", 40, blanks=blanks, trained=4, tested=7)
    blank, start_token, expected = 16, 17, []
    for tokens, positions, targets in zip(
        samples.inputs.tolist(), samples.positions, samples.targets.tolist(), strict=True
    ):
        start = tokens.index(start_token)
        context = tokens[:start]
        assert [symbol for symbol in context if symbol != blank] == targets
        assert context.count(blank) == 7 * blanks
        assert tokens[start + 1 :] == targets[:-1]
        assert positions.tolist() == list(range(start, start + 7))
        symbols_after_blanks = {
            b for a, b in zip([blank, *context], context, strict=False) if a == blank and b != blank
        }
        symbols_after_blanks -= {context[0]}  # a symbol at the first position is answered first
        for i, target in enumerate(targets):
            next_token = context[context.index(targets[i - 1]) + 1 :][:1] if i else context[:1]
            if (blanks or not i) and next_token and next_token != [blank]:
                expected.append(float(next_token == [target]))
            else:
                candidates = (symbols_after_blanks if blanks else set(context)) - set(targets[:i])
                expected.append((target in candidates) / len(candidates))
    assert floor_score(task, samples) == pytest.approx(np.mean(expected))
    proved = task.proved_ceiling(mechanism_named("softmax"), task.default_setting(depth=1, conv=0))
    assert proved is not None
    assert proved.score == pytest.approx(sum(1 / candidates for candidates in range(1, 8)) / 7)
    assert proved.score <= np.mean(expected) + 1e-9
    assert task.proved_ceiling(mechanism_named("softmax"), task.default_setting()) is None


def test_the_item_of_highest_priority_is_retrieved() -> None:
    task, samples = draw_samples("retrieval")
    assert samples.inputs.shape[1] == 65
    assert task.samples(3, Split.TRAIN).inputs.shape[1] == 17
    correct = 0
    for tokens, (target,) in zip(samples.inputs, samples.targets, strict=True):
        items = [(token[0], int(token[2:].argmax())) for token in tokens[:-1]]
        assert max(items)[1] == target
        sums = [sum(priority - 0.5 for priority, label in items if label == label_number) for label_number in range(10)]
        correct += sums.index(max(sums)) == target
    assert floor_score(task, samples) == pytest.approx(correct / 60)


@pytest.mark.parametrize("name", ["parity", "modular"])
def test_only_positions_beyond_the_trained_length_are_scored(name: str) -> None:
    task, test_samples = draw_samples(name, 4, trained=6, tested=9)
    step = 2 if name == "modular" else 1
    assert test_samples.positions[0].tolist() == [6 * step, 7 * step, 8 * step]
    training_samples = task.samples(4, Split.TRAIN)
    assert training_samples.positions[0].tolist() == [i * step for i in range(6)]
    with pytest.raises(UsageError, match="tested=5 must be trained=6 or more"):
        task_named(name).read({"trained": 6, "tested": 5})


def test_parity_counts_the_ones_so_far() -> None:
    for split in Split:
        _, samples = draw_samples("parity", 20, split)
        for tokens, positions, targets in zip(samples.inputs.tolist(), samples.positions, samples.targets, strict=True):
            assert [sum(tokens[: position + 1]) % 2 for position in positions] == targets.tolist()


def test_modular_expressions_have_the_value_of_python() -> None:
    for split in Split:
        _, samples = draw_samples("modular", 20, split, modulus=7, times="yes")
        for tokens, positions, targets in zip(samples.inputs, samples.positions, samples.targets, strict=True):
            words = "".join("0123456+-*"[token] for token in tokens)
            assert [eval(words[: position + 1]) % 7 for position in positions] == targets.tolist()
    with pytest.raises(UsageError, match="modulus=6 must be a prime number"):
        task_named("modular").read({"modulus": 6})


def evaluate(words: list[str]) -> int:
    """Return the value of an expression of ListOps, computed with a stack."""
    operators = {"MAX": max, "MIN": min, "MED": median_low, "SM": lambda digits: sum(digits) % 10}
    stack: list[list[object]] = [[]]
    for word in words:
        if word in operators:
            stack.append([word])
        elif word == "]":
            operator, *elements = stack.pop()
            assert len(elements) > 1
            stack[-1].append(operators[str(operator)](elements))
        else:
            stack[-1].append(int(word))
    ((result,),) = stack
    assert isinstance(result, int)
    return result


def test_listops_have_the_value_computed_with_a_stack() -> None:
    names = [*"0123456789", "MAX", "MIN", "MED", "SM", "]"]
    task, samples = draw_samples("listops", 300)
    deepest, flat_count, outer_count = 0, 0, 0
    for tokens, (target,) in zip(samples.inputs, samples.targets, strict=True):
        words = [names[token] for token in tokens]
        assert evaluate(words) == target
        open_lists = np.cumsum([(word in names[10:14]) - (word == "]") for word in words])
        assert open_lists[-1] == 0
        deepest = max(deepest, int(open_lists.max()))
        digits = [word for word in words if word in names[:10]]
        flat_count += evaluate([words[0], *digits, "]"]) == target
        outer_digits = [word for word, lists in zip(words, open_lists, strict=True) if lists == 1 and word in digits]
        outer_count += (
            evaluate([words[0], *outer_digits, *outer_digits, "]"]) == target
            if outer_digits and words[0] != "SM"
            else 0
        )
    assert deepest == 3
    assert max(flat_count, outer_count) / 300 <= floor_score(task, samples) < 0.6


def test_no_rule_that_evaluates_one_list_beats_the_floor_of_listops() -> None:
    """Literal rules: the outermost operator on its own digits, with stand-ins for inner lists."""
    names = [*"0123456789", "MAX", "MIN", "MED", "SM", "]"]
    task, samples = draw_samples("listops", 2000)
    stand_ins: dict[str, Callable[[list[str]], list[str]]] = {
        "nothing": lambda inner: [],
        "a typical value": lambda inner: [{"MAX": "9", "MIN": "0", "MED": "4", "SM": "5"}[inner[0]]],
        "the first digit": lambda inner: [next(word for word in inner if word.isdigit())],
        "the last digit": lambda inner: [[word for word in inner if word.isdigit()][-1]],
        "all digits": lambda inner: [word for word in inner if word.isdigit()],
    }
    correct = dict.fromkeys(stand_ins, 0)
    for tokens, (target,) in zip(samples.inputs, samples.targets, strict=True):
        words, depth, elements = [names[token] for token in tokens], 0, list[list[str]]()
        for word in words[1:-1]:
            if depth == 0:
                elements.append([])
            elements[-1].append(word)
            depth += (word in names[10:14]) - (word == "]")
        for name, stand_in in stand_ins.items():
            digits = [x for element in elements for x in (element if len(element) == 1 else stand_in(element))]
            answer = int(digits[0]) if len(digits) == 1 else evaluate([words[0], *digits, "]"]) if digits else -1
            correct[name] += answer == target
    assert max(correct.values()) / 2000 > 0.44
    assert floor_score(task, samples) > max(correct.values()) / 2000 + 0.02


def test_no_rule_that_ignores_the_direction_beats_the_floors_of_needle_and_spike() -> None:
    for name, dz in product(("needle", "spike"), (1, 2, 4, 16)):
        task, samples = draw_samples(name, 4000, dz=dz)
        square = np.square(samples.inputs[:, :-1, :dz].astype(np.float64)).sum(-1)
        weights = [softmax(beta * square, axis=1) for beta in (0.1, 0.2, 0.3, 0.5, 1, 2)]
        weights += [(square / square.max(1, keepdims=True)) ** power for power in (1, 2, 4, 6)]
        weights.append((square == square.max(1, keepdims=True)).astype(np.float64))
        if name == "needle":
            rules = [(rule * samples.inputs[:, :-1, dz]).sum(1) for rule in weights]
        else:
            rules = [square.max(1), square.sum(1), np.square(square).sum(1), np.exp(square / 4).sum(1)]
        targets = samples.targets[:, 0] == 1
        best = max(best_threshold(rule, targets) if name == "spike" else ((rule > 0) == targets).mean()
                   for rule in rules)  # fmt: skip
        score, ceiling = floor_score(task, samples), task.ceiling(samples).score
        assert best < score + 0.01
        assert score < ceiling


def best_threshold(values: np.ndarray, targets: np.ndarray) -> float:
    """Return the accuracy of the best threshold on these values."""
    order = np.argsort(values)
    below = np.concatenate([[0], np.cumsum(~targets[order])])
    above = targets.sum() - np.concatenate([[0], np.cumsum(targets[order])])
    return float((below + above).max() / len(values))


@pytest.mark.parametrize("dz", [1, 2, 3, 8, 64])
def test_the_norm_ratio_is_the_mean_over_directions(dz: int) -> None:
    rng, shift = np.random.default_rng(dz), 2.5
    vectors, directions = rng.normal(size=(20, dz)), rng.normal(size=(50_000, dz))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ratios, norms = log_norm_ratio(vectors, shift), np.linalg.norm(vectors, axis=1)
    by_draws = np.log(np.exp(shift * (vectors @ directions.T)).mean(1))
    assert ratios == pytest.approx(by_draws, abs=0.3)
    # The mean of exp(k c) over a coordinate c of a random direction is Gamma(v + 1) (2/k)^v I_v(k).
    order = dz / 2 - 1
    by_formula = [
        mpmath.loggamma(order + 1) + order * mpmath.log(2 / k) + mpmath.log(mpmath.besseli(order, k))
        for k in map(float, shift * norms)
    ]
    assert ratios == pytest.approx(np.array(by_formula, dtype=float), abs=1e-3)


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("[MAX 3 [MIN 5 2 ] 1 ]", [0, 3, 3, 5, 3, 5, 3, 5, 1]),
        ("[SM [MIN 5 2 ] [MAX 1 9 ] ]", [3, -1, 9, 6, 1, 4, 3, 7, 1]),
        ("[MED 4 7 2 ]", [2, 4, 4, 4, 4, 4, 4, 4, -1]),
        ("[MIN 8 [MAX 6 [SM 7 9 ] 5 ] ]", [1, 8, 8, 6, 5, 8, 5, 5, 0]),
        ("[MED [MED 1 2 ] [SM 3 4 ] 5 9 ]", [2, 5, 5, 3, 4, 4, 3, 3, 2]),
    ],
)
def test_rules_that_evaluate_one_list_by_hand(expression: str, values: list[int]) -> None:
    """The operator; its own digits with a stand-in for each inner list; all digits; the first inner operator."""
    words = [*"0123456789", "[MAX", "[MIN", "[MED", "[SM", "]"]
    assert _one_list_values([words.index(word) for word in expression.split()]) == values
