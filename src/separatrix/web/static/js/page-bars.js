import { html } from "./framework.js";
import { mount } from "./page.js";
import { Bars } from "./trained-bars.js";

mount("bars", ({ learned, moreIsBetter, colours }) => html`<${Bars} learned=${learned} moreIsBetter=${moreIsBetter} colourOf=${(name) => colours[name]} />`);
