"""Maps: values over a plane of two parameters, for pages, the explorer and pictures.

A `MapFigure` has one panel for each mechanism. The explorer and pages get it as a heading in JSON and its
numbers as one buffer of floats, which map-data.js reads; `picture` draws it with matplotlib.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from separatrix.analysis.maps import Layer, Map
from separatrix.analysis.maps.quantities import PROBABILITIES
from separatrix.core.documents import keys_of, to_json
from separatrix.core.numbers.json import json_text
from separatrix.core.parameters.ranges import Axis
from separatrix.pages.commands import spell_value
from separatrix.pages.looks import Look, choose_looks, css_colour
from separatrix.pages.maps import captions
from separatrix.pages.maps.scales import (
    Array,
    ColourScale,
    axis_label,
    margin_scale_if_flat,
    margin_title,
    quantity_levels,
    quantity_scale,
)

Numbers = Mapping[str, Array]
PAGE_BITS = 24
"""Significant bits of the numbers in a page, which shows six digits."""
DEFAULT_HEADING = {"quantity": "distinguish", "difference": False, "n_used": None, "moved": "", "title": ""}
LAYER_TEXTS = ("mechanism", "engine", "evidence", "remark")
"""Keys of a layer that are not numbers."""


@dataclass(frozen=True)
class PlaneAxis:
    """An axis of a map, its values as numbers and as exact text."""

    name: str
    label: str
    log: bool
    values: Array
    texts: Sequence[str]

    @property
    def scale(self) -> str:
        """The scale as matplotlib calls it."""
        return "log" if self.log else "linear"

    @classmethod
    def of(cls, axis: Axis) -> PlaneAxis:
        """Return the axis of a parameter."""
        return cls(axis.name, axis_label(axis.name), axis.log, axis.floats, [*map(spell_value, axis.values)])


@dataclass(frozen=True)
class OverlayLine:
    """A named line over a panel, given by points."""

    look: Look
    x: Array
    y: Array

    def as_json(self) -> dict[str, Any]:
        """Return the line for map-lines.js."""
        points = np.stack([self.x, self.y], axis=1).round(5).tolist()
        style = {"colour": css_colour(self.look.colour), "dash": self.look.dash}
        return {"name": self.look.label, "points": points, **style}


@dataclass(frozen=True)
class MapPanel:
    """The values of one mechanism, and how they are shown."""

    mechanism: str
    title: str
    numbers: Numbers
    """`values`; `low` and `high` where there is an interval; `margin` where it is coloured; `formula`, whose
    zeros are the boundary, where one is known."""
    scale: ColourScale
    coloured: str = "values"
    about: Mapping[str, str] = field(default_factory=dict)
    """Engine, evidence and remark of the layer."""
    formula: Mapping[str, str] | None = None
    """The boundary as text, its tag, and where it holds."""
    lines: tuple[OverlayLine, ...] = ()

    @classmethod
    def of_values(
        cls, mechanism: str, title: str, numbers: Numbers, scale: ColourScale, margin: Array | None, **more: Any
    ) -> MapPanel:
        """Return a panel of `numbers["values"]`, or of the margin where the values would have a single colour."""
        values = numbers["values"]
        margin_scale = None if margin is None else margin_scale_if_flat(values, margin)
        if margin is None or margin_scale is None:
            return cls(mechanism, title, numbers, scale, **more)
        numbers = {**numbers, "margin": margin}
        return cls(mechanism, margin_title(title, values), numbers, margin_scale, "margin", **more)

    @classmethod
    def of_probabilities(cls, mechanism: str, title: str, values: Array, margin: Array, **more: Any) -> MapPanel:
        """Return a panel of P, or of the margin where P would have a single colour."""
        scale = ColourScale("P(tells apart)", 0.0, 1.0)
        return cls.of_values(mechanism, title, {"values": values}, scale, margin, **more)

    @property
    def coloured_numbers(self) -> Array:
        """The numbers that are coloured."""
        return self.numbers[self.coloured]


@dataclass(frozen=True)
class MapFigure:
    """Panels over one plane."""

    kind: ClassVar[str] = "map"
    x: PlaneAxis
    y: PlaneAxis
    panels: tuple[MapPanel, ...]
    levels: Mapping[str, float] = field(default_factory=dict)
    """Named values at which lines are drawn over panels that show `values`."""
    heading: Mapping[str, Any] = field(default_factory=dict)
    """More keys of the heading: the title, the command, lengths that were rounded."""

    @property
    def arrays(self) -> list[Array]:
        """All numbers, in the order in which the heading counts them."""
        return [numbers for panel in self.panels for numbers in panel.numbers.values()]

    def describe(self) -> dict[str, Any]:
        """Return the heading, which map-data.js documents."""
        looks = choose_looks(panel.mechanism for panel in self.panels)
        index = iter(range(len(self.arrays)))
        layers = [
            {
                **panel.about,
                **{name: getattr(panel, name) for name in ("mechanism", "title", "coloured", "formula")},
                "colour": looks[panel.mechanism].css_colour,
                "arrays": {name: next(index) for name in panel.numbers},
                "scale": vars(panel.scale),
                "lines": [line.as_json() for line in panel.lines],
            }
            for panel in self.panels
        ]
        axes = [{"name": axis.name, "log": axis.log, "values": axis.texts} for axis in (self.x, self.y)]
        return {
            **DEFAULT_HEADING,
            **self.heading,
            "axes": axes,
            "labels": [self.x.label, self.y.label],
            "layers": layers,
            "levels": [{"name": name, "level": level} for name, level in self.levels.items()],
            "shape": [len(self.y.values), len(self.x.values)],
        }

    def pack(self) -> bytes:
        """Return the response to the explorer: the length of the heading, the heading, the numbers."""
        head = json_text(self.describe(), indent=None).encode()
        head += b" " * (-len(head) % 8)  # arrays of floats begin at multiples of their size
        # The zero makes the prefix eight bytes long, which keeps the arrays aligned.
        return struct.pack("<II", len(head), 0) + head + b"".join(map(_float_bytes, self.arrays))

    def as_json(self) -> dict[str, Any]:
        """Return the data of a figure in a page."""
        return {"heading": self.describe(), "numbers": compress_numbers(self.arrays), "headingTag": "h3"}


def _float_bytes(values: Array) -> bytes:
    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def compress_numbers(arrays: Sequence[Array]) -> str:
    """Return numbers for a page, rounded to `PAGE_BITS` significant bits, in base64.

    Equal bytes of all numbers are stored together, which makes most of them equal to their neighbours: a map
    of 400 by 400 cells takes 50 kB instead of 3 MB.
    """
    # Rounded mantissas end in zero bits, which compress well.
    mantissas, exponents = np.frexp(np.stack(arrays).astype(float))
    rounded_numbers = np.ldexp(np.round(mantissas * 2.0**PAGE_BITS) / 2.0**PAGE_BITS, exponents)
    byte_planes = np.frombuffer(_float_bytes(rounded_numbers), np.uint8).reshape(-1, 8).T
    return base64.b64encode(zlib.compress(byte_planes.tobytes())).decode()


def map_figure(result: Map) -> MapFigure:
    """Return the figure of a map."""
    lengths = result.grid.n
    heading = {
        **{key: to_json(getattr(result, name)) for key, name, _ in keys_of(Map) if key != "layers"},
        # As text: JavaScript cannot hold every integer beyond 2**53.
        "n_used": None if lengths is None else [[spell_value(n) for n in row] for row in lengths.tolist()],
        "title": captions.title(result),
        "place": captions.place(result),
        # The axes that are parameters of the mechanisms.
        "own": [axis.name for axis in (result.x, result.y) if result.question.is_own(axis.name)],
    }
    panels = tuple(_panel(result, layer) for layer in result.panels)
    return MapFigure(PlaneAxis.of(result.x), PlaneAxis.of(result.y), panels, quantity_levels(result), heading)


def _panel(result: Map, layer: Layer) -> MapPanel:
    numbers = {"values": layer.values}
    if layer.has_interval:
        numbers |= {"low": layer.low, "high": layer.high}
    boundary = layer.formula
    if boundary is not None:
        numbers["formula"] = boundary[1]
    is_probability = result.quantity in PROBABILITIES and not result.difference
    margin, scale = layer.margin if is_probability else None, quantity_scale(result)
    about = {name: getattr(layer, name) for name in LAYER_TEXTS}
    formula = boundary and {name: getattr(boundary[0], name) for name in ("formula", "tag", "limit")}
    name = layer.mechanism
    return MapPanel.of_values(name, name, numbers, scale, margin, about=about, formula=formula)
