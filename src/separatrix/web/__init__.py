"""The explorer: a page on this machine that shows what attention tells apart, while one drags.

- `server` listens on the machine's own address and opens the page; `app` is the whole application.
- `guard` refuses requests of other sites and says what a page may load.
- `api` has the addresses that answer, a file for each part of the page; every answer is the document that
  the command of the same words prints with --json.
- `answers` computes them, in processes (`lanes`) that can be ended when nobody waits any more.
- `static` is the page: ES modules, no build step, nothing from outside.
"""

from separatrix.web.server import Exploring, explore

__all__ = ["Exploring", "explore"]
