"""Shapes in signatures are checked while testing, and only then. Deadlines are off: machines are noisy."""

import torch
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook(["separatrix.mechanisms", "separatrix.reader"], "beartype.beartype")
torch.set_num_threads(1)  # tests run in parallel already
settings.register_profile("separatrix", deadline=None)
settings.load_profile("separatrix")
