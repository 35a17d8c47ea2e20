"""What processes that answer for the page are forked from: all they need is imported, and set aside.

Nothing of it is garbage, so that none is looked for meanwhile: the page is there sooner.
"""

import gc

gc.disable()

import scipy.special  # noqa: E402, F401
import torch  # noqa: E402, F401

from separatrix.web.answers import import_first  # noqa: E402

import_first()
gc.freeze()
gc.enable()
