"""The address of a Dask scheduler, and the settings with which its workers should be started."""

from __future__ import annotations

import re

from separatrix.core.errors import UsageError
from separatrix.core.startup import SAFE_PATH

FORM = "tcp://host:8786"
TRIMMING = "MALLOC_TRIM_THRESHOLD_"
"""Dask's nannies set it to return memory to the system early, which makes torch slower."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

_ADDRESS = re.compile(r"(?:(tcp|tls)://)?(?:\[[0-9A-Fa-f:.%]+\]|[\w.-]+):(\d{1,5})")

_HARMLESS = re.compile(r"\s*(?:tcp://|tls://)?[\w.-]*(?::\d*)?/?\s*")
"""Texts that an error may repeat, because they cannot hold a password."""


def require_distributed() -> None:
    """Raise UsageError if Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError("a Dask cluster needs the package distributed: pip install 'separatrix[dask]'") from None


def read_address(address: str) -> str:
    """Return the full address of a scheduler, or raise UsageError.

    >>> read_address("10.0.0.7:8786")
    'tcp://10.0.0.7:8786'
    """
    match = _ADDRESS.fullmatch(address.strip())
    if match is None or not 0 < int(match[2]) < 65536:
        text = repr(address) if _HARMLESS.fullmatch(address) else "this"
        raise UsageError(f"{text} is not the address of a Dask scheduler; write for example {FORM}")
    return address.strip() if match[1] else f"tcp://{address.strip()}"


def settings() -> dict[str, None]:
    """Return the settings for a cluster that is started from Python: `dask.config.set(settings())`."""
    return {f"distributed.nanny.pre-spawn-environ.{TRIMMING}": None}


def variables() -> dict[str, str]:
    """Return the environment variables for `dask worker`: `settings`, one thread each, and a safe path."""
    return {
        "DASK_DISTRIBUTED__NANNY__PRE_SPAWN_ENVIRON": repr({TRIMMING: None}),
        **dict.fromkeys((*THREADS, SAFE_PATH), "1"),
    }
