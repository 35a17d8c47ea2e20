// Lines over an axis, drawn by uPlot, which is loaded when a view first needs it. A chart is drawn again when
// its width or the colour scheme changes.

import { html, useEffect, useRef, useState } from "./framework.js";
import { useDark, useSize } from "./parts.js";

let loading = null;

function load() {
  loading ??= new Promise((done, failed) => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/static/vendor/uplot.css" });
    const script = Object.assign(document.createElement("script"), { src: "/static/vendor/uplot.js", onload: () => done(window.uPlot), onerror: failed });
    document.head.append(sheet, script);
  }).catch(() => { loading = null; return null; });
  return loading;
}

export function inks() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return { ink: read("--ink"), faint: read("--faint"), line: read("--line"), paper: read("--paper"), accent: read("--accent") };
}

export function axis(label, more = {}) {
  const { faint, line } = inks();
  const font = "12px system-ui, sans-serif";
  return { label, labelFont: font, font, stroke: faint, labelSize: 22, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, ...more };
}

// Powers of ten as one reads them; nothing between them.
export function powerTicks(_, values) {
  return values.map((value) => {
    const exponent = Math.round(Math.log10(value));
    return Math.abs(Math.log10(value) - exponent) < 1e-9 ? (exponent >= 0 && exponent < 4 ? String(10 ** exponent) : `1e${exponent}`) : "";
  });
}

// `options()` makes what uPlot takes but for the width; `data` is its data; `at` the point that is walked to.
export function Chart({ options, data, height = 260, at = null, label }) {
  const [ref, size] = useSize();
  const dark = useDark();
  const plot = useRef(null);
  const [missing, setMissing] = useState(false);
  useEffect(() => {
    let wanted = true;
    if (!size.width) return undefined;
    load().then((UPlot) => {
      if (!wanted) return;
      setMissing(!UPlot);
      if (!UPlot) return;
      plot.current = new UPlot({ width: Math.floor(size.width), height, legend: { show: false }, ...options(UPlot) }, data, ref.current);
      if (at !== null) point(plot.current, at);
    });
    return () => { wanted = false; plot.current?.destroy(); plot.current = null; };
  }, [size.width, dark, data, options, height]);
  useEffect(() => { if (plot.current && at !== null) point(plot.current, at); }, [at]);
  return html`<div class="chart" role="img" aria-label=${label} ref=${ref}>
    ${missing && html`<p class="hint">The picture could not be loaded; the numbers are below.</p>`}</div>`;
}

function point(plot, index) {
  const left = plot.valToPos(plot.data[0][index], "x");
  plot.setCursor({ left, top: plot.over.clientHeight / 2 }, false);
}
