"""Imports for the fork server: worker processes are forked with everything that the first views need.

The endpoints that are not imported here load their packages when a worker first needs them.
"""

import gc

# None of the imported objects is garbage: collecting meanwhile only delays the first page. After `freeze` no
# worker looks at them either, so that the memory stays shared.
gc.disable()

import scipy.special  # noqa: E402, F401
import torch  # noqa: E402, F401

from separatrix.web.endpoints import controls, maps, questions, see  # noqa: E402, F401

gc.freeze()
gc.enable()
