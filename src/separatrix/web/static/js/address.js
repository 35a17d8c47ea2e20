// The address of a view is the command's words:
//   separatrix map spike softmax,linear a1=0.5:1.5:64 --of margin
//   /map/spike/softmax,linear?a1=0.5:1.5:64&--of=margin
// A place is { command, names, words, options }; words and options are [name, value] pairs in order. State of the page that
// no command takes, as ~find=top, is in `page`, if there is any.

import { useEffect, useState } from "./framework.js";

function encode(text) {
  return encodeURIComponent(text).replace(/%(2C|3A|3D|40)/gi, (code) => decodeURIComponent(code));
}

export function readPlace(location = window.location) {
  const parts = location.pathname.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const pairs = [...new URLSearchParams(location.search)];
  const page = pairs.filter(([name]) => name.startsWith("~")).map(([name, value]) => [name.slice(1), value]);
  return {
    command: parts[0] ?? "",
    names: parts.slice(1),
    words: pairs.filter(([name]) => !name.startsWith("--") && !name.startsWith("~")),
    options: pairs.filter(([name]) => name.startsWith("--")).map(([name, value]) => [name.slice(2), value]),
    ...(page.length && { page }),
  };
}

export function query(words, options = [], page = []) {
  const all = [...words, ...options.map(([name, value]) => [`--${name}`, value]), ...page.map(([name, value]) => [`~${name}`, value])];
  const text = all.map(([name, value]) => `${encode(name)}=${encode(String(value))}`).join("&");
  return text ? `?${text}` : "";
}

export function addressOf(place) {
  return `/${[place.command, ...place.names].filter(Boolean).map(encode).join("/")}${query(place.words, place.options, place.page)}`;
}

function quoteForShell(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

// The command of a place; an option with the value "yes" is a flag.
export function commandOf(place) {
  const options = place.options.flatMap(([name, value]) => (value === "yes" ? [`--${name}`] : [`--${name}`, value]));
  const words = place.words.map(([name, value]) => `${name}=${value}`);
  return ["separatrix", place.command, ...place.names, ...words, ...options].map((word) => quoteForShell(String(word))).join(" ");
}

// The same in Python; values are strings, because decimals are exact.
export function pythonOf(place) {
  const literal = (value) => (/^-?\d+$/.test(value) ? value : JSON.stringify(String(value)));
  const parameters = [
    ...place.names.map((name) => JSON.stringify(name)),
    ...place.words.map(([name, value]) => `${name}=${literal(String(value))}`),
    ...place.options.map(([name, value]) => `${name}=${value === "yes" ? "True" : JSON.stringify(String(value))}`),
  ];
  return `sx.${place.command}(${parameters.join(", ")})`;
}

// The mechanisms of a comma-separated list; a parameter after a comma belongs to the mechanism before it.
export function splitMechanisms(text) {
  const mechanisms = [];
  for (const part of text.split(",").map((word) => word.trim()).filter(Boolean)) {
    const isParameter = mechanisms.at(-1)?.includes(":") && part.includes("=") && !part.includes(":");
    mechanisms.push(isParameter ? `${mechanisms.pop()},${part}` : part);
  }
  return mechanisms;
}

const listeners = new Set();

// Goes to a place, as a new entry of the history or (with `replace`) instead of the current one.
export function go(place, { replace = false } = {}) {
  const address = typeof place === "string" ? place : addressOf(place);
  if (address !== window.location.pathname + window.location.search) {
    window.history[replace ? "replaceState" : "pushState"](null, "", address);
  }
  for (const listener of listeners) listener(readPlace());
}

export function usePlace() {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const onPop = () => setPlace(readPlace());
    listeners.add(setPlace);
    window.addEventListener("popstate", onPop);
    return () => {
      listeners.delete(setPlace);
      window.removeEventListener("popstate", onPop);
    };
  }, []);
  return place;
}
