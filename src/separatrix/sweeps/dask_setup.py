"""Where a Dask scheduler is, and how its workers are to be started."""

from __future__ import annotations

import re

from separatrix.core.errors import UsageError
from separatrix.core.startup import SAFE_PATH

FORM = "tcp://host:8786"
TRIMMING = "MALLOC_TRIM_THRESHOLD_"
"""Dask's nannies set it so that memory goes back to the system early; torch is slower then."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

_ADDRESS = re.compile(r"(?:(tcp|tls)://)?(?:\[[0-9A-Fa-f:.%]+\]|[\w.-]+):(\d{1,5})")

_NAMES_NO_ONE = re.compile(r"\s*(?:tcp://|tls://)?[\w.-]*(?::\d*)?/?\s*")
"""What is repeated in a refusal: nothing that could hold a password."""


def require_distributed() -> None:
    """Refuse where Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError(
            "a Dask cluster needs the package distributed: pip install 'separatrix[dask]'"
        ) from None


def read_address(address: str) -> str:
    """The address of a scheduler in full, or a UsageError.

    >>> read_address("10.0.0.7:8786")
    'tcp://10.0.0.7:8786'
    """
    read = _ADDRESS.fullmatch(address.strip())
    if read is None or not 0 < int(read[2]) < 65536:
        shown = repr(address) if _NAMES_NO_ONE.fullmatch(address) else "this"
        raise UsageError(f"{shown} is no address of a Dask scheduler; write for example {FORM}")
    return address.strip() if read[1] else f"tcp://{address.strip()}"


def settings() -> dict[str, None]:
    """What to set before a cluster is made in Python: `dask.config.set(settings())`."""
    return {f"distributed.nanny.pre-spawn-environ.{TRIMMING}": None}


def variables() -> dict[str, str]:
    """The environment in which to start `dask worker`: as `settings`, one thread each, and a safe path."""
    return {
        "DASK_DISTRIBUTED__NANNY__PRE_SPAWN_ENVIRON": repr({TRIMMING: None}),
        **dict.fromkeys((*THREADS, SAFE_PATH), "1"),
    }
