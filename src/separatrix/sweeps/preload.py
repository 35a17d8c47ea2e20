"""Imports for worker processes, done once in the server that they are forked from.

Objects are excluded from garbage collection, which would otherwise write to each of them and so copy the
memory that the workers share.
"""

import gc

import scipy.special  # noqa: F401
import torch  # noqa: F401

import separatrix.sweeps.worker  # noqa: F401

gc.collect()
gc.freeze()
