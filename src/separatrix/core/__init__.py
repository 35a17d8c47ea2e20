"""Shared foundations: errors, files, numbers, parameters, tensors, processes, results."""
