// Preact with htm, and an id that this release of it does not make.

import { useState } from "../vendor/preact-htm.js";

export * from "../vendor/preact-htm.js";

let made = 0;

export function useId() {
  const [id] = useState(() => `id-${++made}`);
  return id;
}
