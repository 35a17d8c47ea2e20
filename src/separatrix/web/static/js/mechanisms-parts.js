// What the atlas and cards share.

import { html } from "./framework.js";
import { addressOf, go } from "./address.js";

// Resolves when it is there, or cannot be had: the page is readable without it.
export function loadStyle(address) {
  return new Promise((done) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = address;
    link.onload = done;
    link.onerror = done;
    document.head.append(link);
  });
}

export function Link({ to, children, ...rest }) {
  const address = typeof to === "string" ? to : addressOf(to);
  const follow = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(address);
    document.getElementById("main")?.scrollIntoView();
  };
  return html`<a href=${address} onClick=${follow} ...${rest}>${children}</a>`;
}

export function cardPlace(mechanism, options = []) {
  return { command: "assess", names: [mechanism], words: [], options };
}

// The question behind a standing: its construction at the reference point, with what sets a second column apart.
export function questionPlace(mechanism, column, columns) {
  const first = columns.find((each) => each.construction === column.construction);
  const words = Object.entries(column.parameters).filter(([name, value]) => first !== column && first.parameters[name] !== value);
  return { command: "verdict", names: [column.construction, mechanism], words, options: [] };
}

export function withOption(place, name, value) {
  const options = place.options.filter(([each]) => each !== name);
  return { ...place, options: value ? [...options, [name, value]] : options };
}

export function withPageState(place, name, value) {
  const page = (place.page ?? []).filter(([each]) => each !== name);
  return { ...place, page: value ? [...page, [name, value]] : page };
}

export const optionOf = (place, name) => place.options.find(([each]) => each === name)?.[1] ?? "";
export const pageStateOf = (place, name) => (place.page ?? []).find(([each]) => each === name)?.[1] ?? "";
