"""The explorer: a page on this machine that shows which inputs attention tells apart.

- `server` listens on the machine's own address and opens the page; `app` is the whole application.
- `guard` refuses requests of other sites and restricts what a page may load.
- `endpoints` has one function per address of the API; the answer is the document that the command of the
  same words prints with --json. `routes` generates the routes from them.
- `dispatch` sends calls to worker processes (`lanes`, `workers`), which are ended when nobody waits any more.
- `static` is the page: ES modules, no build step, nothing from outside.
"""

from separatrix.web.server import RunningExplorer, explore

__all__ = ["RunningExplorer", "explore"]
