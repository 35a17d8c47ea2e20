"""Addresses of Dask schedulers, and what is said where none can be reached; no cluster is started."""

from __future__ import annotations

import socket
import sys
from contextlib import closing

import pytest

pytest.importorskip("distributed", reason="the extra is not installed: pip install 'separatrix[dask]'")

from separatrix.core.parameters import UsageError
from separatrix.sweeps import cluster as module
from separatrix.sweeps.cluster import DaskExecutor
from separatrix.sweeps.dask_setup import read_address


@pytest.mark.parametrize(
    "address", ["", "host", "tcp://", "tcp://host", "host:port", "http://host:1", "a:0", "a:70000"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a Dask scheduler; write for example tcp://"):
        DaskExecutor(address)


def test_addresses_without_a_scheme() -> None:
    assert read_address(" 127.0.0.1:8786 ") == "tcp://127.0.0.1:8786"
    assert read_address("tls://[::1]:8786") == "tls://[::1]:8786"


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_TIMEOUT", 0.5)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"no Dask scheduler responds at {address}; start one with"):
            DaskExecutor(address)


def test_certificates_are_missing() -> None:
    with pytest.raises(UsageError, match="needs certificates"):
        DaskExecutor("tls://127.0.0.1:8786")


def test_dask_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'separatrix\[dask\]'"):
        DaskExecutor("tcp://127.0.0.1:8786")
