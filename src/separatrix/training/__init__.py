"""Training: tasks, data sets, models, the training loop and constructed weights."""
