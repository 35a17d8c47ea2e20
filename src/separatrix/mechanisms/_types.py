"""Types of the tensors and options of a call, with shapes as in `scaled_dot_product_attention`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.tensors import Bool, Float, Tensor, torch

Queries = Float[Tensor, "batch heads queries width"]
Keys = Float[Tensor, "batch heads keys width"]
Values = Float[Tensor, "batch heads keys features"]
Counts = Float[Tensor, "... keys"]
Present = Bool[Tensor, "batch keys"]
Attended = Float[Tensor, "batch heads queries features"]
"""The outputs of all queries."""

Query = Float[Tensor, "batch heads width"]
Key = Float[Tensor, "batch heads width"]
Value = Float[Tensor, "batch heads features"]
Output = Float[Tensor, "batch heads features"]
"""The output of one token."""

Floats = NDArray[np.float64] | np.float64
Visible = Bool[Tensor, "#batch 1 #queries keys"]


@dataclass(frozen=True)
class CallOptions:
    """The options of a call beside q, k, v and extras."""

    counts: Tensor | None = None
    causal: bool = False
    first: int = 0
    present: Tensor | None = None

    def positions(self) -> dict[str, Any]:
        """Return `first` and `present` as keyword arguments, without those at their default."""
        positions: dict[str, Any] = {"first": self.first} if self.first else {}
        return positions if self.present is None else {**positions, "present": self.present}

    def visible_keys(self, rows: range, k: Tensor) -> Visible | None:
        """Return a mask of the keys that these queries see, or None if they see all.

        >>> CallOptions(causal=True, first=1).visible_keys(range(2), torch.zeros(1, 1, 3, 4))[0, 0].int()
        tensor([[1, 1, 0],
                [1, 1, 1]], dtype=torch.int32)
        """
        keys = k.shape[-2]
        visible = None if self.present is None else self.present[:, None, None, :]
        # If the first of these queries sees the last key, the causal mask hides nothing.
        if self.causal and self.first + rows.start < keys - 1:
            start, stop = self.first + rows.start, self.first + rows.stop
            query_positions = torch.arange(start, stop, device=k.device)[:, None]
            past = (torch.arange(keys, device=k.device) <= query_positions)[None, None]
            visible = past if visible is None else past & visible
        return visible
