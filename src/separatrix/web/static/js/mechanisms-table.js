// The table of the atlas: a grid whose cells are walked with the arrow keys.

import { Component, html, useEffect, useRef } from "./framework.js";
import { Link } from "./sheet.js";
import { cardPlace } from "./mechanisms-parts.js";
import { failureOf } from "./mechanisms-cells.js";
import { labelOf, letterOf, shortProbability, sortName, UNKNOWN } from "./mechanisms-words.js";

// Drawn again only if one of its cells has changed.
class Row extends Component {
  shouldComponentUpdate(next) {
    const { place, table, sortColumn, cells } = this.props;
    return next.place !== place || next.table !== table || next.sortColumn !== sortColumn
      || next.cells.length !== cells.length || next.cells.some((cell, i) => cell !== cells[i]);
  }

  render({ row, cells, columns, table, place, sortColumn }) {
    return html`<tr>
      <th scope="row"><${Link} to=${cardPlace(row.asked_as)} tabindex="-1" data-at=${`${place},0`} title=${row.formula}>${row.asked_as}<//></th>
      ${cells.map((cell, i) => {
        const column = columns[i];
        const failure = cell ? undefined : failureOf(row, column);
        return html`<td key=${column.name} class=${`cell ${cell?.verdict ?? "unknown"} ${column === sortColumn ? "sorted" : ""}`} tabindex="-1"
          data-at=${`${place},${i + 1}`}><span class="visually-hidden">${labelOf(row, column, cell, table)}${failure ? `, ${failure}` : ""}</span>
          <span aria-hidden="true"><b>${letterOf(cell, table)}</b>${cell && cell.distinguish !== null && html`<i>${table.marks[cell.kind]}</i>${shortProbability(cell.distinguish)}`}</span>
        </td>`;
      })}
    </tr>`;
  }
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-8, 0], PageDown: [8, 0] };

function target(event, [row, column], [rows, columns]) {
  if (event.key === "Home") return [event.ctrlKey ? 0 : row, 0];
  if (event.key === "End") return [event.ctrlKey ? rows : row, columns];
  const step = STEPS[event.key];
  if (!step || event.altKey || event.metaKey) return null;
  return [Math.min(rows, Math.max(0, row + step[0])), Math.min(columns, Math.max(0, column + step[1]))];
}

// `groups` is [{ title, rows }]; `onRead` is called with the cell that is pointed at or has the focus.
export function AtlasTable({ groups, columns, table, sort, sortColumn, onSort, onRead, cellOf }) {
  const grid = useRef(null);
  const active = useRef(null);
  const rows = groups.flatMap((group) => group.rows);
  const at = (place) => grid.current?.querySelector(`[data-at="${place}"]`);
  useEffect(() => {
    if (active.current && grid.current?.contains(active.current)) return;
    active.current = at("1,1") ?? at("0,1");
    if (active.current) active.current.tabIndex = 0;
  });
  const placeOf = (element) => element?.closest?.("[data-at]");
  const read = (element) => {
    const [row, column] = element.dataset.at.split(",").map(Number);
    onRead({ row: rows[row - 1], column: columns[column - 1] });
  };
  const onFocus = (event) => {
    const element = placeOf(event.target);
    if (!element) return;
    if (active.current) active.current.tabIndex = -1;
    active.current = element;
    element.tabIndex = 0;
    read(element);
  };
  const onPoint = (event) => { const element = placeOf(event.target); if (element) read(element); };
  const onKey = (event) => {
    const element = placeOf(event.target);
    const next = element && target(event, element.dataset.at.split(",").map(Number), [rows.length, columns.length]);
    if (!next) return;
    event.preventDefault();
    (at(next.join()) ?? at(`${next[0]},1`))?.focus();
  };
  let place = 0;
  return html`<div class="atlas-region" role="region" aria-label="Every mechanism on every construction">
    <table class="atlas" role="grid" aria-rowcount=${rows.length + 1} aria-colcount=${columns.length + 1} ref=${grid}
      onFocusCapture=${onFocus} onMouseOver=${onPoint} onKeyDown=${onKey}>
      <thead><tr>
        <th scope="col" class="corner" aria-sort=${sort === "name" ? "ascending" : undefined}><button type="button" class="plain" tabindex="-1" data-at="0,0" onClick=${() => onSort("name")}>mechanism</button></th>
        ${columns.map((column, i) => html`<th key=${column.name} scope="col" class="turned" aria-sort=${column === sortColumn ? "descending" : undefined}>
          <button type="button" class="plain" tabindex="-1" data-at=${`0,${i + 1}`} onClick=${() => onSort(sortName(column, columns))}
            title=${`${column.title} Click to sort by this column.`}>${column.name}${column === sortColumn ? " ▴" : ""}</button></th>`)}
      </tr></thead>
      ${groups.map((group) => html`<tbody key=${group.title}>
        ${group.title && html`<tr class="family"><th scope="rowgroup" colspan=${columns.length + 1}><span>${group.title}</span></th></tr>`}
        ${group.rows.map((row) => html`<${Row} key=${row.mechanism} row=${row} place=${++place} columns=${columns} table=${table}
          sortColumn=${sortColumn} cells=${columns.map((column) => cellOf(row, column))} />`)}
      </tbody>`)}
    </table>
  </div>`;
}

export function Legend({ table }) {
  return html`<div class="legend">
    <ul aria-label="Letters of cells">
      ${table.words.map(({ word, letter, meaning }) => html`<li key=${word}><b class=${`cell ${word}`}>${letter}</b> ${word === "none" ? "" : `${word}: `}${meaning}</li>`)}
      ${table.rescues.map(({ by, letter, meaning }) => html`<li key=${by}><b class="cell blind">${letter}</b> ${meaning}</li>`)}
      <li><b class="cell unknown">${UNKNOWN}</b> not computed</li>
    </ul>
    <p>P(tells apart) is ${Object.entries(table.marks).map(([kind, mark]) => `${mark} ${kind}`).join(", ")}.</p>
  </div>`;
}
