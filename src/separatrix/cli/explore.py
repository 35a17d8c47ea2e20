"""`explore`: serve the web app."""

from __future__ import annotations

import signal
from typing import Annotated

from typer import Option, echo

from separatrix.cli.options import secret
from separatrix.core.numbers.printable import visible
from separatrix.core.secrets import Secret

PORT = 8310
"""Equal to the default of `web`, which is too slow to import for a help text; a test compares them."""


def explore(
    store: Annotated[
        Secret | None,
        Option("--store", parser=secret, metavar="URL", help="Show the sweeps of this store, as they grow."),
    ] = None,
    port: Annotated[int, Option(help="Port on this machine; 0 for any free port.")] = PORT,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the page in your browser.")] = True,
    mechanism: Annotated[
        list[str] | None, Option(help="Add your mechanism, mine:attend or mine.py:attend; may be repeated.")
    ] = None,
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    allow_others: Annotated[
        bool, Option("--allow-others", help="With --host: let other machines see the page.")
    ] = False,
) -> None:
    """Open the explorer, a web app on this machine.

    \b
    Examples:
      separatrix explore
      separatrix explore --store sqlite:///results.db --mechanism mine.py:attend
    """
    from separatrix.core.interrupts import stop_signal
    from separatrix.core.startup import process_context

    process_context("separatrix.web.preload")  # the slowest import; runs while the rest is imported and checked

    from separatrix.mechanisms.load import mechanism_from
    from separatrix.web import RunningExplorer
    from separatrix.web import explore as serve
    from separatrix.web.settings import Settings

    for name in mechanism or []:
        mechanism_from(name)
    settings = Settings(store, tuple(mechanism or []))

    def announce(explorer: RunningExplorer) -> None:
        echo(f"The explorer is at {explorer.address}")
        if explorer.is_public:
            echo("Other machines can reach it.")
        if explorer.missing_store is not None:
            missing_store = visible(explorer.missing_store)
            echo(f"There is no store {missing_store} yet; the page shows it once there is one.")
        echo("Press Ctrl-C to end it.")

    try:
        serve(settings, host=host, port=port, allow_others=allow_others, browser=browser, announce=announce)
    except KeyboardInterrupt:
        if stop_signal() != signal.SIGINT:  # Ctrl-C is the way to end it
            raise
