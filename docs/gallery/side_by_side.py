"""Two results in one figure: python docs/gallery/side_by_side.py FILE."""

import sys

from matplotlib.figure import Figure

import separatrix as sx

figure = Figure(figsize=(9, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
sx.scaling("spike", "linear", n="1e3:1e9:7:log").plot(left)
sx.boundary("spike", "softmax", a1="0.5:1.5").plot(right)
figure.savefig(sys.argv[1])
