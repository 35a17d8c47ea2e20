// Mechanisms: the atlas of all of them, and the card of one or of several side by side.

import { html } from "./framework.js";
import { useSheet } from "./sheet.js";
import { AtlasView } from "./mechanisms-atlas.js";
import { CardView } from "./mechanisms-card.js";

export function View({ place, reachable }) {
  useSheet("/static/figures.css");
  useSheet("/static/mechanisms.css");
  return place.command === "assess" && place.names.length
    ? html`<${CardView} place=${place} reachable=${reachable} />`
    : html`<${AtlasView} place=${place} reachable=${reachable} />`;
}
