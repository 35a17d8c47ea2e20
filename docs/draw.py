"""Draw the pictures of docs/gallery.md with the commands shown next to them.

python docs/draw.py                  all pictures, which takes an hour
python docs/draw.py bits boundary    two of them
python docs/draw.py --into FOLDER …  into another folder than this checkout
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
"""Commands followed by the picture that they draw."""
SEPARATRIX = ("-c", "from separatrix.cli import main; main()")


def pictures() -> dict[str, tuple[str, list[str]]]:
    """Return, for the name of each picture, its file below `docs` and its commands."""
    matches = PICTURE.findall((ROOT / "docs" / "gallery.md").read_text())
    return {Path(file).stem: (file, commands.strip().removeprefix("$ ").split("\n$ ")) for commands, file in matches}


def draw(commands: list[str], folder: Path) -> None:
    """Run commands of separatrix, Python scripts of this checkout, and `cp` in a folder."""
    for command in commands:
        program, *words = shlex.split(command)
        if program == "cp":
            shutil.copy(folder / words[0], folder / words[1])
            continue
        script = [str(ROOT / words[0]), *words[1:]] if program == "python" else [*SEPARATRIX, *words]
        subprocess.run([sys.executable, *script], cwd=folder, check=True)


def main() -> None:
    by_name = pictures()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(by_name))
    parser.add_argument("--into", type=Path, default=ROOT)
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in by_name]:
        parser.error(f"{', '.join(unknown)}: the gallery has {', '.join(by_name)}")
    for name in arguments.names or by_name:
        file, commands = by_name[name]
        (arguments.into / "docs" / file).parent.mkdir(parents=True, exist_ok=True)
        draw(commands, arguments.into)


if __name__ == "__main__":
    main()
