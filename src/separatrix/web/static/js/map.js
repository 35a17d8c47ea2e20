// The view map.

import { html } from "./framework.js";

export function View({ place }) {
  return html`<p>${place.command}</p>`;
}
