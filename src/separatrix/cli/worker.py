"""`worker`: compute cells on this machine for a sweep that runs on a Dask cluster."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def worker(
    address: Annotated[str, Argument(help="Address of the Dask scheduler, for example tcp://host:8786.")],
    workers: Annotated[int | None, Option(min=1, help="Number of worker processes (default: number of cores).")] = None,
    death_timeout: Annotated[
        int, Option(min=1, metavar="SECONDS", help="Give up if no scheduler responds for so long.")
    ] = 60,
) -> None:
    """Compute cells for `separatrix sweep --scheduler ADDRESS`, until Ctrl-C or the scheduler ends.

    Starts `dask worker` with one thread per process, and without a setting of Dask that makes torch
    slower. Everyone who can reach the scheduler can run code here: see docs/clusters.md.
    """
    import os
    import sys

    from separatrix.sweeps.dask_setup import TRIMMING, read_address, require_distributed, variables

    require_distributed()
    from dask.system import CPU_COUNT

    number = workers or CPU_COUNT
    options = {"--nworkers": number, "--nthreads": 1, "--memory-limit": 1 / number, "--death-timeout": death_timeout}
    words = [word for name, value in options.items() for word in (name, str(value))]
    # -P keeps the current folder off the path: a queue.py in it must not replace Python's own.
    command = [sys.executable, "-P", "-m", "distributed.cli.dask_worker", read_address(address), *words]
    environment = {name: value for name, value in os.environ.items() if name != TRIMMING}
    # Replaces this process, so that signals reach the handlers of Dask.
    os.execve(sys.executable, [*command, "--no-dashboard"], {**environment, **variables()})
