"""Published statements that need no training: they can be counted or computed."""

from __future__ import annotations

from itertools import permutations

import numpy as np


def householder_factors(n: int = 5) -> float:
    """Return the number of matrices I - beta k kᵀ whose products include every permutation of n.

    A product of m of them differs from I by a matrix of rank m at most, and I - P has rank n less the number
    of cycles of P. As many are enough: a cycle of length l is made of l - 1 transpositions, and that of i and
    j is I - 2 k kᵀ with k = (e_i - e_j) / sqrt 2. In other representations of S5 it takes no fewer:
    characters are rational, so that the four roots of a cycle of length 5 are equally many.

    >>> householder_factors(5), householder_factors(3)
    (4.0, 2.0)
    """
    return float(max(n - _count_cycles(permutation) for permutation in permutations(range(n))))


def _count_cycles(permutation: tuple[int, ...]) -> int:
    visited_points, count = set[int](), 0
    for start in range(len(permutation)):
        count += start not in visited_points
        while start not in visited_points:
            visited_points.add(start)
            start = permutation[start]
    return count


def gradient_step_difference(count: int = 1000) -> float:
    """Return the distance of linear attention with hand-written weights from a step of gradient descent.

    The step is from 0, on half the squared error of the examples, at the best rate 1/(n+d+1). The distance is
    the largest difference of the answers to `count` regressions.
    """
    import torch

    from separatrix.mechanisms import mechanism_named
    from separatrix.training.learning.batch import SampleBatch, compute_outputs
    from separatrix.training.learning.witnesses import build_witness
    from separatrix.training.tasks import Split, task_named

    task = task_named("regression").read({})
    model = build_witness(task, mechanism_named("identity-features:normalised=no"), task.default_setting())
    assert model is not None
    samples, d = task.samples(count, Split.TEST), task.parameters.d
    with torch.no_grad():
        outputs = compute_outputs(model, SampleBatch.of(samples))[:, 0, 0].double().numpy()
    largest = 0.0
    for tokens, output in zip(samples.inputs.astype(np.float64), outputs, strict=True):
        *examples, query = tokens
        gradient = -sum(example[d] * example[:d] for example in examples)
        weights = -gradient / (len(examples) + d + 1)
        largest = max(largest, abs(float(weights @ query[:d]) - float(output)))
    return largest
