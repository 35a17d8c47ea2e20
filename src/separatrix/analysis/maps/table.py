"""A map as rows, one for each mechanism and cell, and as arrays.

Columns `x` and `x_used` for an axis x: the value asked for as a number, and the value used as exact text.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.core.numbers import format_exact
from separatrix.core.parameters.ranges import Axis

if TYPE_CHECKING:
    import polars as pl

    from separatrix.analysis.maps.plane import Map

Array = np.ndarray[Any, Any]


def frame(found: Map) -> pl.DataFrame:
    """One row for each mechanism and cell; the difference, where that was asked for, as well."""
    import polars as pl

    layers = found.layers if not found.difference else (*found.layers, *found.shown)
    places = {
        name: np.broadcast_to(column, found.places.shape).ravel() for name, column in _columns(found).items()
    }
    frames = [
        pl.DataFrame(
            {
                "mechanism": pl.Series([layer.mechanism]).new_from_index(0, layer.values.size),
                **places,
                found.of: layer.values.ravel(),
                "low": layer.low.ravel(),
                "high": layer.high.ravel(),
                "engine": pl.Series([layer.engine]).new_from_index(0, layer.values.size),
            }
        )
        for layer in layers
    ]
    return pl.concat(frames).with_columns(pl.col(found.of, "low", "high").fill_nan(None))


def as_npz(found: Map) -> bytes:
    """Arrays that `numpy.load` reads without pickles: a layer first, then rows of y, then columns of x."""
    buffer = io.BytesIO()
    arrays: dict[str, Array] = {
        "construction": np.array(found.construction.name),
        "fixed": np.array([f"{name}={value}" for name, value in found.fixed.items()]),
        "mechanisms": np.array([layer.mechanism for layer in found.layers]),
        "engines": np.array([layer.engine for layer in found.layers]),
        "axes": np.array([found.x.name, found.y.name]),
        **_columns(found),
        found.of: np.stack([layer.values for layer in found.layers]),
        "low": np.stack([layer.low for layer in found.layers]),
        "high": np.stack([layer.high for layer in found.layers]),
    }
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _columns(found: Map) -> dict[str, Array]:
    """Both axes and what was used, in arrays that broadcast to the plane."""
    x, y, used = found.x, found.y, found.places.n
    columns = {
        x.name: x.floats[None, :],
        y.name: y.floats[:, None],
        f"{x.name}_used": _exact(x)[None, :],
        f"{y.name}_used": _exact(y)[:, None],
    }
    if used is not None:
        columns["n_used"] = np.array([[str(n) for n in row] for row in used.tolist()])
    return columns


def _exact(axis: Axis) -> Array:
    return np.array([format_exact(value) for value in axis.values])
