"""The addresses of the API below /api/v1: one function per endpoint, a file for each part of the page.

An address is the words of a command: `separatrix map spike softmax,linear a1=0.5:1.5:64 --of margin` is
`/api/v1/map/spike/softmax,linear?a1=0.5:1.5:64&--of=margin`, and the answer is what the command prints with
--json.

`@endpoint(path, document)` declares a function as an endpoint; `routes` generates the route and its OpenAPI
description. A function gets values by the names of its parameters, and returns a document or a `Reply`:

- those in the path, for example `construction`. Names of mechanisms are admitted before the function sees
  them, also those in options: a page can never name code.
- `words`, the parameters of a construction, and `options`, which have two dashes in the address.
- `store_address`, the address of the store or None, and `own_mechanisms`: both from the command line.
- `accepts_cells`: whether the client takes the binary numbers of a map.
- `is_quick`: whether this is the quick lane. The function answers at once or raises `Slow`; then it is called
  again in the slow lane. It refuses wrong arguments before it raises `Slow`: nobody should wait for a slow
  process to learn of them.
- `report`, which is called with the progress.

Functions run in worker processes, so that they can be ended when the client leaves, unless they are declared
with `in_server=True`. The server imports these modules to describe the documents; packages that only the
computation needs and that take long to import are imported in the functions.
"""
