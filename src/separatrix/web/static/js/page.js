// Figures in static pages. An element with `data-figure` names the element that holds the figure's data as JSON;
// `mount` draws all figures of one kind. A page inlines this module and those of the kinds that it has.

import { render } from "./framework.js";

export function mount(kind, draw) {
  for (const element of document.querySelectorAll(`[data-figure][data-kind="${kind}"]`)) {
    const data = JSON.parse(document.getElementById(element.dataset.figure).textContent);
    Promise.resolve(draw(data)).then((figure) => render(figure, element));
  }
}

// Printed pages show what is folded on the screen; `long` tables stay folded.
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not(.long)")) details.open = true;
});
