import { Chart } from "./chart.js";
import { html } from "./framework.js";
import { mount } from "./page.js";

mount("chart", (chart) => html`<${Chart} chart=${chart} />`);
