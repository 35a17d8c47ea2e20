"""The page's frame: style, fixed text, and the few lines of script that hand the plots to plotly."""

from __future__ import annotations

from string import Template

STYLE = """
:root {
  --ink: #222; --faint: #666; --rule: #ddd; --paper: #fff; --wash: #f6f5f1;
  --accent: #0072b2; --warn: #d55e00;
  --serif: Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.6 var(--serif); }
main { max-width: 1180px; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
p, ul.tags { max-width: 46rem; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 1rem; max-width: 24em; }
h2 { font-size: 1.4rem; line-height: 1.3; margin: 3rem 0 .8rem; }
h3 { font: 600 .95rem/1.3 var(--sans); margin: 0 0 .2rem; }
nav, table, .keys, .facts, footer, .downloads { font-family: var(--sans); }
nav { font-size: .9rem; margin: 1.2rem 0 0; }
nav a { margin-right: 1.1em; white-space: nowrap; }
a { color: var(--accent); }
code { font: .84em/1.5 var(--mono); }
sub, sup { line-height: 0; font-size: .72em; }
.lead { font-size: 1.1rem; }

.caveat { border-left: 5px solid var(--warn); background: #fdf3ec; padding: .9rem 1.3rem; margin: 2rem 0; }
.caveat { max-width: 50rem; }
.caveat h2 { margin: 0 0 .3rem; font-size: 1.15rem; }
.caveat p { margin: .5rem 0; }

.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 1rem; }
.facts { margin: 2rem 0 0; padding: 0; }
.facts div { background: var(--wash); padding: .9rem 1.1rem; border-radius: 6px; }
.facts dt { font-size: .82rem; color: var(--faint); line-height: 1.35; }
.facts dd { margin: .15rem 0 0; font-size: 1.3rem; line-height: 1.35; font-weight: 600; }

ul.tags { list-style: none; padding: 0; font-size: .95rem; }
table { width: 100%; border-collapse: collapse; table-layout: fixed; font-size: .84rem; line-height: 1.45; }
th { text-align: left; font-weight: 600; vertical-align: bottom; }
th { border-bottom: 2px solid var(--ink); padding: .4rem .8rem .4rem 0; }
td { border-bottom: 1px solid var(--rule); padding: .6rem .8rem .6rem 0; }
td { vertical-align: top; overflow-wrap: break-word; }
.growth th:nth-child(n) { width: auto; }
th:nth-child(1) { width: 41%; }
th:nth-child(2) { width: 6.5%; }
th:nth-child(3) { width: 12.5%; }
th:nth-child(4) { width: 16%; }
th:nth-child(6) { width: 8%; }
td .name { display: block; color: var(--faint); font: .92em/1.5 var(--mono); }
td .summary { display: block; color: var(--faint); margin-top: .25rem; }
.holds { color: #00664b; font-weight: 600; }
.only { color: #8a5a00; font-weight: 600; }
.fails { color: #b00020; font-weight: 700; }

figure { margin: 1rem 0 0; }
figcaption p { margin: .7rem 0; font-size: .98rem; }
.words { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 2.4rem; margin-top: .6rem; }
.words p { max-width: none; }
.keys { display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; font-size: .86rem; }
.keys { margin: .4rem 0 .9rem; padding: 0; list-style: none; }
.keys svg { vertical-align: middle; margin-right: .45em; }
.panels { display: grid; gap: 1.6rem 1.4rem; }
.columns-1 { grid-template-columns: minmax(0, 1fr); }
.columns-2 { grid-template-columns: repeat(2, minmax(0, 1fr)); }
.columns-3 { grid-template-columns: repeat(3, minmax(0, 1fr)); }
.plot { width: 100%; }
.command { margin: .35rem 0; max-width: none; line-height: 1.4; }
.command code { background: var(--wash); padding: .1em .35em; border-radius: 3px; overflow-wrap: break-word; }
.command code { -webkit-box-decoration-break: clone; box-decoration-break: clone; }
.command .prints { font: .82rem var(--sans); color: var(--faint); }
.panels .command { font-size: .88rem; }
.downloads { font-size: .86rem; }
.paper { display: none; width: 100%; }
footer { margin-top: 4rem; border-top: 1px solid var(--rule); padding-top: 1rem; }
footer { font-size: .85rem; color: var(--faint); }

@media (max-width: 980px) { .columns-3 { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@media (max-width: 680px) {
  body { font-size: 16px; }
  main { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.6rem; }
  .columns-2, .columns-3, .words { grid-template-columns: minmax(0, 1fr); }
  table, tbody, tr { display: block; }
  thead { position: absolute; left: -9999px; }
  tr { border-bottom: 2px solid var(--rule); padding: .7rem 0; }
  td { display: block; border: 0; padding: .12rem 0; }
  td:not(.statement)::before { content: attr(data-label) ": "; color: var(--faint); }
  td:empty { display: none; }
}
@media print {
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  nav, .plot, .panels h3, .keys, .downloads { display: none; }
  .panels { display: block; }
  .paper { display: block; }
  table { font-size: .74rem; }
  th:nth-child(2) { width: 8%; }
  tr, .caveat { break-inside: avoid; }
  section[id] { break-before: page; }
  section[id] h2 { margin-top: 0; }
}
"""

INTRODUCTION = """
<p class="lead">This report runs the separation between softmax and linear attention of “Superiority of
Softmax: Unveiling the Performance Edge Over Linear Attention” (arXiv 2310.11685) and shows where it
holds. Two families of token matrices, D0 and D1, differ in a single entry: one token among n has a spike
of a<sub>0</sub> in D0 and of a<sub>1</sub> in D1. A four-layer network with random signs reads what
attention returns; it distinguishes the two if it stays silent on D0 and fires on D1.</p>
<p>Every statement is executed as a check, with its provenance. Probabilities over the random signs are
exact, by a closed form, and are compared with plain sampling on all n tokens. In the figures, point at a
curve for its numbers; drag to zoom, double-click to go back.</p>
"""

LEDGER_INTRODUCTION = """
<p>Each statement is a check that can fail. “Holds only where” means that it failed somewhere, and says
where it does hold. Slack is how far from failing a check was, or how loose a bound is.</p>
"""

SCRIPT = """
(function () {
  var touch = window.matchMedia("(pointer: coarse)").matches;
  var config = {responsive: true, displaylogo: false, displayModeBar: false};
  document.querySelectorAll(".plot").forEach(function (place) {
    var plot = JSON.parse(document.getElementById(place.dataset.source).textContent);
    if (touch) { plot.layout.dragmode = false; }
    Plotly.newPlot(place, plot.data, plot.layout, config);
  });
})();
"""

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""Nothing is loaded from anywhere; the browser sees to it."""

PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="$policy">
<title>$title</title>
<style>$style</style>
<noscript><style>.paper { display: block; } .plot, .panels h3 { display: none; }</style></noscript>
</head>
<body>
<main>
$body
</main>
<script>$library</script>
<script>$script</script>
</body>
</html>
""")
