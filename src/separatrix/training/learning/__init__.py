"""Training of one model on one task: the model, the loop, and its checkpoints.

config = RunConfig(task, mechanism, task.default_setting(), rate=0.01, seed=0)
result = train(config)                                        # RunResult: score, outcome, curves, weights
for item in train_with_checkpoints(config, checkpoint): ...   # the same, with checkpoints (bytes) in between
model = build_model(task, mechanism, setting, seed)
score = score_model(model, task, task.samples(1000, Split.TEST))
"""

from separatrix.training.learning.batch import score_model
from separatrix.training.learning.checkpoint import CheckpointError, pack_arrays, unpack_arrays
from separatrix.training.learning.loop import RunConfig, RunOutcome, RunResult, perturb, train, train_with_checkpoints
from separatrix.training.learning.model import build_model

__all__ = [
    "CheckpointError",
    "RunConfig",
    "RunOutcome",
    "RunResult",
    "build_model",
    "pack_arrays",
    "perturb",
    "score_model",
    "train",
    "train_with_checkpoints",
    "unpack_arrays",
]
