"""The cost of mechanisms on this machine: time, memory, operations, state.

`curves` has the results and does not import torch; `cost` measures them.
"""
