"""Frames that are wanted again, in a file without a name."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    import polars as pl


class Spool:
    """Keeps the frames that pass through it; once all of them have, gives them again, one at a time."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115
        self._places: list[tuple[int, int]] = []
        self.complete = False

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def through(self, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The same frames; those of a pass that was not finished are forgotten."""
        self._places.clear()
        self._file.seek(0)
        for frame in frames:
            start = self._file.tell()
            made = BytesIO()
            frame.write_ipc_stream(made, compression="lz4")
            self._file.write(made.getbuffer())
            self._places.append((start, self._file.tell() - start))
            yield frame
        self.complete = True

    def again(self) -> Iterator[pl.DataFrame]:
        """What passed through, in the same order."""
        import polars as pl

        for start, length in self._places:
            self._file.seek(start)
            yield pl.read_ipc_stream(BytesIO(self._file.read(length)))
