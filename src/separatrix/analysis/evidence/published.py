"""Published numbers of trained models, each with its source, its setting, and how it is measured here.

An entry is held against ours only where the question is the same: the same data, the same score, the same
mechanism with the same number of layers and convolutions. What differs beside that (sizes, steps, norms) is
said in `differs`; where the question is another one, `other` says in what, and no verdict is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from separatrix.analysis.evidence.exact_statements import gradient_step_difference, householder_factors
from separatrix.core.parameters import UsageError, nearest

LINEAR = "identity-features:normalised=no"
PARITY = "trained=40 tested=256 rates=0.003,0.01"
MODULAR = "trained=20 tested=128 modulus=5 times=yes rates=0.01 validation=64"
FURTHER = (64, 256, 1024, 4096, 16384)
FIGURE_ACCURACY = 0.025
"""How far a number that was read off a figure may be off."""


@dataclass(frozen=True)
class Training:
    """An experiment as it is typed after `learn`, with one mechanism, and what is read off it."""

    typed: str
    length: int | None = None
    """A further length that runs are tested at, instead of the tested one."""
    above_chance: bool = False
    """Whether scores are shares of the way from chance to 1."""
    best_of: int | None = None
    """How many seeds the best is taken of, instead of the mean over all."""


@dataclass(frozen=True)
class Exactly:
    """A number that is computed, without training."""

    compute: Callable[[], float]
    said: str
    """What is computed, in words."""
    rounding: float = 0.0
    """A bound on the rounding errors of the computation."""


@dataclass(frozen=True)
class Nothing:
    """What is not computed, and why."""

    why: str


@dataclass(frozen=True)
class Stated:
    """A number as the source states it, and how far it may be off as it is stated."""

    value: float
    accuracy: float

    @classmethod
    def printed(cls, digits: str) -> Stated:
        """A printed decimal number or percentage, which is off by half of its last digit at most.

        >>> Stated.printed("0.02"), Stated.printed("98.6%")
        (Stated(value=0.02, accuracy=0.005), Stated(value=0.986, accuracy=0.0005))
        """
        number, unit = Fraction(digits.rstrip("%")), Fraction(1, 100 if digits.endswith("%") else 1)
        decimals = len(digits.rstrip("%").partition(".")[2])
        return cls(float(number * unit), float(unit / 10**decimals / 2))

    @classmethod
    def figure(cls, value: float) -> Stated:
        """A number that was read off a figure."""
        return cls(value, FIGURE_ACCURACY)

    @classmethod
    def formula(cls, value: float) -> Stated:
        """A number that a formula or a statement gives, without any rounding."""
        return cls(value, 0.0)


@dataclass(frozen=True)
class Published:
    """A published number.

    - `stated`: the number with its accuracy; None where the source states none.
    - `how`: how it is measured here.
    - `differs`: in what our setting differs, where that leaves the question the same.
    - `other`: in what the question is another one. Empty where it is the same.
    - `seconds`: CPU seconds that it takes here, about; numbers of one experiment share its runs.
    """

    name: str
    source: str
    states: str
    stated: Stated | None
    how: Training | Exactly | Nothing
    differs: str = ""
    other: str = ""
    seconds: int = 0

    @property
    def value(self) -> float | None:
        return None if self.stated is None else self.stated.value

    @property
    def accuracy(self) -> float:
        """How far the value may be off, as it is stated."""
        return 0.0 if self.stated is None else self.stated.accuracy


def _parity(name: str, who: str, mechanism: str, digits: str, seconds: int) -> Published:
    return Published(
        f"parity-{name}",
        "arXiv 2411.12537, table 3",
        f"{who}: parity, trained on 3 to 40 bits, tested on 40 to 256; 0 is chance, best of 3 seeds",
        Stated.printed(digits),
        Training(f"parity {mechanism} {PARITY}", above_chance=True, best_of=3),
        differs="one layer of width 64, asked at every bit, 500 steps at most",
        seconds=seconds,
    )


def _modular(name: str, who: str, mechanism: str, digits: str, seconds: int) -> Published:
    return Published(
        f"modular-{name}",
        "arXiv 2411.12537, table 3",
        f"{who}: arithmetic modulo 5 without brackets, trained on 3 to 40 symbols, tested on 40 to 256; 0 is "
        "chance, best of 3 seeds",
        Stated.printed(digits),
        Training(f"modular {mechanism} {MODULAR}", above_chance=True, best_of=3),
        other="factors after * are never 0 here, and every digit is asked; one layer, 500 steps at most",
        seconds=seconds,
    )


def _retrieval(items: int, digits: str) -> Published:
    also = ",".join(map(str, FURTHER))
    typed = f"retrieval softmax trained=16 tested=16 also={also} rates=0.003,0.01,0.03"
    return Published(
        f"retrieval-{items}",
        "arXiv 2410.01104",
        f"softmax: the class of the largest of {items:,} items, trained on 16",
        Stated.printed(digits),
        Training(typed, length=None if items == 16 else items),
        differs="linear maps instead of deep MLPs around one head; training ends when 99 % are right, after "
        "some hundred steps",
        seconds=30,
    )


def _recall(name: str, words: str, states: str, digits: str, source: str, seconds: int) -> Published:
    return Published(
        name,
        source,
        states,
        Stated.printed(digits),
        Training(" ".join(f"mqar softmax pairs=8 {words} rates=0.005,0.015".split())),
        other="here all keys are asked at the end, of 32 keys and 32 values; the source asks among other "
        "symbols, of a larger vocabulary",
        seconds=seconds,
    )


def _location(who: str, mechanism: str, strength: int, value: float, seconds: int) -> Published:
    return Published(
        f"location-{who}-{strength}",
        "arXiv 2509.21936, read off a figure",
        f"{who}: error of single-location regression, 3 tokens, nu = {strength}",
        Stated.figure(value),
        Training(f"location {mechanism} n=3 shift={strength} rates=0.003,0.01"),
        other="tokens of 8 numbers, where the source lets their width grow; whether its nu is our shift is "
        "not known here",
        seconds=seconds,
    )


PUBLISHED = (
    _parity("softmax", "Transformer", "softmax", "0.02", 55),
    _parity("delta", "DeltaNet", "delta", "0.02", 80),
    _parity("negative", "DeltaNet, eigenvalues from -1 on", "deltaproduct:factors=1", "1.0", 30),
    _modular("delta", "DeltaNet", "delta", "0.31", 85),
    _modular("negative", "DeltaNet, eigenvalues from -1 on", "deltaproduct:factors=1", "0.97", 85),
    *map(
        _retrieval, (16, 64, 256, 1024, 4096, 16384), ("98.6%", "94.3%", "81.3%", "53.8%", "22.6%", "12.4%")
    ),
    _recall(
        "recall-attention",
        "conv=0",
        "attention, one layer: MQAR",
        "2%",
        "arXiv 2508.19029, table 2",
        20,
    ),
    _recall(
        "recall-convolution",
        "",
        "attention with a convolution, one layer: MQAR",
        "99%",
        "arXiv 2508.19029, table 2",
        10,
    ),
    _recall(
        "recall-zoology",
        "conv=0 depth=2",
        "attention, two layers of width 64: MQAR of 64 tokens",
        "1.00",
        "arXiv 2312.04927, figure 2",
        40,
    ),
    Published(
        "recall-rates",
        "arXiv 2508.19029",
        "recurrent models recall in a narrow window of learning rates only",
        None,
        Nothing("no number is stated; `separatrix learn mqar softmax,delta --json` has windows as lr_window"),
    ),
    _location("softmax", "softmax", 1, 0.35, 10),
    _location("linear", LINEAR, 1, 0.55, 15),
    _location("softmax", "softmax", 2, 0.15, 10),
    _location("linear", LINEAR, 2, 0.40, 15),
    Published(
        "gradient-step",
        "arXiv 2307.03576",
        "one layer of linear attention can be one step of gradient descent: no difference",
        Stated.formula(0.0),
        Exactly(
            gradient_step_difference,
            "the largest difference between constructed weights, in float32, and a literal step, 1,000 "
            "regressions",
            rounding=1e-5,
        ),
    ),
    Published(
        "gradient-step-learned",
        "arXiv 2307.03576",
        "and training finds it: the error (d+1)/(n+d+1) with d=5, n=20",
        Stated.formula(6 / 26),
        Training(f"regression {LINEAR}"),
        differs="the formula is the expected error, ours that on 10,000 test samples",
        seconds=35,
    ),
    Published(
        "s5-factors",
        "arXiv 2609.24797",
        "the word problem of S5 needs four Householder factors a token in one layer",
        Stated.formula(4.0),
        Exactly(householder_factors, "factors that every permutation of 5 can be made of, by counting"),
    ),
)


def published_named(names: list[str]) -> tuple[Published, ...]:
    """The entries of these names, or all where there is none; else a UsageError with the nearest."""
    known = {each.name: each for each in PUBLISHED}
    for name in names:
        if name not in known:
            near = nearest(name, list(known))
            raise UsageError(f"there is no published number {name}{near}; there are: {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names)) or PUBLISHED
