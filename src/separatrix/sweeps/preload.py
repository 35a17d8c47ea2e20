"""What the server that workers are forked from imports: all they need.

Its objects are set aside from garbage collection, which would otherwise write to each of them, and so
make a copy of the memory that workers share.
"""

import gc

import torch  # noqa: F401

import separatrix.sweeps.work  # noqa: F401

gc.collect()
gc.freeze()
