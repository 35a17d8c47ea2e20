"""Random parameter points for the constructions of `literal`, and the mechanisms they are tried with."""

from __future__ import annotations

import random
from fractions import Fraction

KERNELS = (
    "softmax",
    "softmax:temperature=1/2",
    "linear",
    "identity-features:normalised=no",
    "power:beta=2",
    "power:beta=3",
    "taylor:order=2",
    "relu",
    "squared-relu",
    "sigmoid",
    "softmax-sink:sink=1",
    "softpick",
    "logn-softmax:scale=1/2",
    "hardmax",
    "topk:k=2",
    "sparsemax",
    "entmax:alpha=1.5",
)


def decimal(chance: random.Random, low: float, high: float) -> Fraction:
    """A number of two decimal places, so that it is typed and read without rounding."""
    return Fraction(chance.randint(round(low * 100), round(high * 100)), 100)


def random_point(construction: str, chance: random.Random) -> dict[str, Fraction]:
    """Return parameters under which the construction is small enough for loops."""
    n, m = Fraction(chance.randint(2, 14)), Fraction(chance.randint(1, 6))
    low = decimal(chance, 0, 0.5)
    high = low + decimal(chance, 0.1, 1.5)
    if construction == "routing":
        point = {
            "n": Fraction(2 * chance.randint(2, 8)),
            "scale": decimal(chance, 0.1, 6),
            "a": decimal(chance, 0.1, 2),
            "b": decimal(chance, 0, 1),
            "tau": decimal(chance, 0.1, 1.5),
        }
    elif construction == "regression":
        width = chance.randint(2, 4)
        point = {
            "n": Fraction(width * chance.randint(1, 4)),
            "width": Fraction(width),
            "a0": low,
            "a1": high,
            "tau": decimal(chance, 0.1, 6),
        }
    elif construction == "recall":
        digits = chance.randint(1, 3)
        base = chance.randint(2, 4)
        point = {
            "n": Fraction(chance.randint(2, min(16, base**digits))),
            "width": Fraction(base * digits),
            "digits": Fraction(digits),
            "scale": decimal(chance, 0.2, 5),
            "tau": decimal(chance, 0.05, 1.2),
        }
    elif construction == "majority":
        point = {
            "n": n,
            "a0": low,
            "a1": high,
            "noise": decimal(chance, 0, 1),
            "groups": Fraction(chance.randint(1, 4)),
            "gap": decimal(chance, 0.1, 3),
            "tau": decimal(chance, 0.1, 1.5),
        }
    elif construction == "spikes":
        point = {
            "n": n,
            "k": Fraction(chance.randint(2, 4)),
            "a0": low,
            "a1": high,
            "b": decimal(chance, 0.05, 0.9),
            "tau": decimal(chance, 0.05, 0.95),
        }
    elif construction == "level":
        levels = chance.randint(2, 6)
        point = {
            "n": n,
            "a0": low,
            "a1": high,
            "levels": Fraction(levels),
            "at": Fraction(chance.randint(0, levels - 2)),
            "gap": decimal(chance, 0.1, 3),
        }
        if chance.random() < 0.5:
            point["tau"] = decimal(chance, 0.05, 1)
    elif construction in ("injectivity", "duplication", "parity", "dispersion", "critical", "averaging", "location"):
        point = {"n": n, "tau": decimal(chance, 0.05, 1.5)}
        if construction == "injectivity":
            point |= {"query": decimal(chance, 0.1, 2), "factor": decimal(chance, 0.3, 3)}
        elif construction == "duplication":
            point |= {"r0": Fraction(chance.randint(1, 3)), "r1": Fraction(chance.randint(1, 3))}
        elif construction == "parity":
            point["n"] = Fraction(2 ** chance.randint(1, 4))
            point |= {"scale": decimal(chance, 0.1, 3), "a": decimal(chance, 0.1, 2), "b": decimal(chance, 0, 1)}
        elif construction == "critical":
            point |= {"gamma": decimal(chance, 0.2, 3), "rho": decimal(chance, 0, 1)}
        elif construction == "averaging":
            point["q"] = Fraction(chance.randint(1, int(n) // 2))
        elif construction == "location":
            d = chance.randint(4, 7)
            point |= {"n": Fraction(chance.randint(2, 3) * (d - 2)), "d": Fraction(d)}
            point |= {"b": decimal(chance, 0.05, 1), "c": decimal(chance, 0.05, 1)}
        if construction in ("dispersion", "critical", "location"):
            point |= {"a0": low, "a1": high}
        if construction in ("injectivity", "dispersion", "averaging", "location"):
            point["gap"] = decimal(chance, 0, 3)
    else:
        raise ValueError(construction)
    return {**point, "m": m}


def spell(point: dict[str, Fraction]) -> list[str]:
    """The words that a user types: whole numbers and decimals."""
    return [f"{name}={value.numerator if value.denominator == 1 else float(value)}" for name, value in point.items()]
