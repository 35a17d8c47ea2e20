// Mechanisms: the atlas of all of them, and the card of one or of several side by side.

import { html } from "./framework.js";
import { loadStyle } from "./mechanisms-parts.js";
import { AtlasView } from "./mechanisms-atlas.js";
import { CardView } from "./mechanisms-card.js";

await loadStyle("/static/mechanisms.css");

export function View({ place, reachable }) {
  return place.command === "assess" && place.names.length
    ? html`<${CardView} place=${place} reachable=${reachable} />`
    : html`<${AtlasView} place=${place} reachable=${reachable} />`;
}
