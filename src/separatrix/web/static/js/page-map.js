import { html } from "./framework.js";
import { decode } from "./map-data.js";
import { MapFigure } from "./map-figure.js";
import { mount } from "./page.js";

mount("map", async (source) => html`<${MapFigure} map=${await decode(source)} headingTag=${source.headingTag} />`);
