"""Processes as others on the same machine can look them up: is the one that wrote this still there?"""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

PROC = Path("/proc")


def this_process() -> str:
    """The machine, the process and when it began; empty where the system does not tell."""
    began = _began(os.getpid())
    return f"{_machine()} {os.getpid()} {began}" if _machine() and began else ""


def has_ended(process: str) -> bool:
    """Whether a process was on this machine and is gone; of others, and where in doubt, False."""
    machine, _, rest = process.partition(" ")
    number, _, began = rest.partition(" ")
    return bool(machine) and machine == _machine() and number.isdigit() and _began(int(number)) != began


@cache
def _machine() -> str:
    """The host, since it was last started, and the part of it whose process numbers can be seen from here."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        numbers = str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""
    return "/".join((platform.node(), boot, numbers)).replace(" ", "_")


def _began(number: int) -> str:
    """When a process began, in the system's own ticks; empty if it is not there, or only its exit code is."""
    try:
        fields = (PROC / str(number) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
