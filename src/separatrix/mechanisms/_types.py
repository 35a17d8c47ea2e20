"""Types of the tensors that mechanisms take and return, with shapes as in `scaled_dot_product_attention`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.core.tensors import Bool, Float, Tensor

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
