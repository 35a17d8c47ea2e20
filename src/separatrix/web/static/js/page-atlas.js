// The filter and the order of the atlas in a static page, whose table is there without scripts, too.

import "./page.js";

const body = document.querySelector(".atlas tbody");
const lines = [...body.children];
const rows = lines.filter((line) => line.classList.contains("row"));
const [filter, order] = ["filter", "order"].map((id) => document.getElementById(id));

function arrange() {
  const text = filter.value.trim().toLowerCase();
  const isShown = (row) => `${row.dataset.name} ${row.dataset.family}`.toLowerCase().includes(text);
  const sorted = [...rows];
  if (order.value === "name") sorted.sort((a, b) => (a.dataset.name < b.dataset.name ? -1 : 1));
  if (order.value === "seen") sorted.sort((a, b) => b.dataset.seen - a.dataset.seen);
  for (const row of rows) row.hidden = !isShown(row);
  const families = new Set(rows.filter(isShown).map((row) => row.dataset.family));
  const headings = lines.filter((line) => !rows.includes(line));
  for (const heading of headings) heading.hidden = order.value !== "family" || !families.has(heading.textContent.trim());
  body.append(...(order.value === "family" ? lines : [...sorted, ...headings]));
}

filter.addEventListener("input", arrange);
order.addEventListener("change", arrange);
