"""Draw the pictures of docs/gallery.md again, by the commands that stand beside them.

python docs/draw.py                  all of them, which takes an hour
python docs/draw.py bits boundary    those two
python docs/draw.py --into folder …  in another folder than this checkout
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = re.compile(r"```console\n((?:\$ [^\n]+\n)+)```\n\n!\[[^\]]*\]\(([^)]+)\)")
"""Commands, and the picture that they make."""
SEPARATRIX = ("-c", "from separatrix.cli import main; main()")


def pictures() -> dict[str, tuple[str, list[str]]]:
    """For the name of each picture its file, below `docs`, and the commands."""
    found = PICTURE.findall((ROOT / "docs" / "gallery.md").read_text())
    return {
        Path(file).stem: (file, commands.strip().removeprefix("$ ").split("\n$ ")) for commands, file in found
    }


def draw(commands: list[str], folder: Path) -> None:
    """Run commands in a folder: those of separatrix, scripts of this checkout, and copies."""
    for command in commands:
        program, *words = shlex.split(command)
        if program == "cp":
            shutil.copy(folder / words[0], folder / words[1])
            continue
        script = [str(ROOT / words[0]), *words[1:]] if program == "python" else [*SEPARATRIX, *words]
        subprocess.run([sys.executable, *script], cwd=folder, check=True)


def main() -> None:
    known = pictures()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--into", type=Path, default=ROOT)
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in known]:
        parser.error(f"{', '.join(unknown)}: the gallery has {', '.join(known)}")
    for name in asked.names or known:
        file, commands = known[name]
        (asked.into / "docs" / file).parent.mkdir(parents=True, exist_ok=True)
        draw(commands, asked.into)


if __name__ == "__main__":
    main()
