"""Training of one model on one task: the model, the loop, and the checkpoints it goes on from.

run = Run(task, mechanism, task.default_setting(), rate=0.01, seed=0)
found = train(run)                            # a Trained: score, outcome, curves, weights
for step in training(run, checkpoint): ...    # the same, with checkpoints (bytes) on the way
model = model_for(task, mechanism, setting, seed)
score = score_of(model, task, task.samples(1000, Split.TEST))
"""

from separatrix.training.learning.batch import score_of
from separatrix.training.learning.checkpoint import CheckpointError, arrays, read_arrays
from separatrix.training.learning.loop import (
    Outcome,
    Run,
    Trained,
    perturbed,
    samples_to_test,
    samples_to_validate,
    train,
    training,
)
from separatrix.training.learning.model import model_for, tokens_of

__all__ = [
    "CheckpointError",
    "Outcome",
    "Run",
    "Trained",
    "arrays",
    "model_for",
    "perturbed",
    "read_arrays",
    "samples_to_test",
    "samples_to_validate",
    "score_of",
    "tokens_of",
    "train",
    "training",
]
