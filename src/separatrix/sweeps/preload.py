"""What processes import before they are given cells to compute: all they need, so that no cell waits for it.

Objects are set aside from garbage collection, which would otherwise write to each of them, and so
make a copy of the memory that workers share with the server they are forked from.
"""

import gc

import scipy.special  # noqa: F401
import torch  # noqa: F401

import separatrix.sweeps.worker  # noqa: F401

gc.collect()
gc.freeze()
