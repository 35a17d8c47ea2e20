"""All that changes in a run, as the bytes of a checkpoint, and a run at the place of a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from separatrix.training.learning.checkpoint import CheckpointError, arrays, read_arrays
from separatrix.training.learning.curves import Curves

WEIGHTS, MOMENTS, CURVES = "weights/", "optimizer/", "curves/"
MOMENT_NAMES = ("step", "exp_avg", "exp_avg_sq")
"""The state that AdamW keeps for each weight."""


def snapshot(step: int, model: nn.Module, optimizer: torch.optim.Optimizer, curves: Curves) -> bytes:
    """The step, the weights, the moments of the optimiser and the curves."""
    found: dict[str, Any] = {"step": step}
    found |= {WEIGHTS + name: tensor.cpu().numpy() for name, tensor in model.state_dict().items()}
    for number, weight in enumerate(model.parameters()):
        for name, tensor in optimizer.state.get(weight, {}).items():
            found[f"{MOMENTS}{number}/{name}"] = tensor.cpu().numpy()
    found |= {CURVES + name: array for name, array in curves.arrays().items()}
    return arrays(**found)


def restore(checkpoint: bytes, model: nn.Module, optimizer: torch.optim.Optimizer, curves: Curves) -> int:
    """Bring all of it to where the checkpoint was made; the number of steps until there."""
    found = read_arrays(checkpoint)
    try:
        _restore(found, model, optimizer, curves)
        step = int(found["step"])
        if step != curves.made:
            raise ValueError(f"step {step} of a run that made {curves.made}")
        return step
    except (KeyError, RuntimeError, ValueError, TypeError, IndexError, OverflowError):
        raise CheckpointError("the checkpoint is not one of this run; begin anew: --retry-failed") from None


def _restore(found: Any, model: nn.Module, optimizer: torch.optim.Optimizer, curves: Curves) -> None:
    def under(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): each for name, each in found.items() if name.startswith(prefix)}

    weights = {name: torch.from_numpy(np.asarray(each)) for name, each in under(WEIGHTS).items()}
    model.load_state_dict(weights)
    parameters = list(model.parameters())
    for path, each in under(MOMENTS).items():
        number, name = path.split("/")
        weight, moment = parameters[int(number)], torch.from_numpy(np.asarray(each))
        if (name not in MOMENT_NAMES) or (moment.shape != (weight.shape if name != "step" else ())):
            raise ValueError(f"{path} does not belong to this optimiser")
        optimizer.state[weight][name] = moment.to("cpu" if name == "step" else weight.device)
        weight.grad = torch.zeros_like(weight)  # it had one, and is stepped even where it gets none
    curves.restore(under(CURVES))
