// Preact with htm, and `useId`, which this release does not have.

import { useState } from "../vendor/preact-htm.js";

export * from "../vendor/preact-htm.js";

let idCount = 0;

export function useId() {
  const [id] = useState(() => `id-${++idCount}`);
  return id;
}
