"""A folder in which every import is a trap, and the command as it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

NAMES = """
    torch queue numpy sitecustomize usercustomize separatrix typing json __init__ polars sqlalchemy psycopg
    distributed dask random signal socket pickle selectors threading multiprocessing concurrent logging runpy
    entmax scipy matplotlib optuna fla tomllib secrets site re os
"""
TRAP = "from pathlib import Path; Path(__file__).with_suffix('.ran').touch(); raise SystemExit('trapped')\n"


def lay_traps(folder: Path) -> None:
    """A file for every name, which leaves a mark if it is run."""
    folder.mkdir()
    for name in NAMES.split():
        (folder / f"{name}.py").write_text(TRAP)


def installed(folder: Path) -> list[str]:
    """The command as a script in a folder of its own, as pip writes it."""
    folder.mkdir()
    script = folder / "separatrix"
    script.write_text("from separatrix.cli import main\nif __name__ == '__main__':\n    main()\n")
    return [sys.executable, str(script)]
