"""What processes that answer for the page are forked from: all they need is imported, and set aside."""

import gc

import scipy.special  # noqa: F401
import torch  # noqa: F401

import separatrix.web.answers  # noqa: F401

gc.collect()
gc.freeze()
