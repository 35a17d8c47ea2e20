// The screen: the size of an element and the colours of the page, as they change.

import { useEffect, useRef, useState } from "./framework.js";

export function useSize() {
  const ref = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setSize({ width: entry.contentRect.width, height: entry.contentRect.height }));
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, size];
}

const QUERIES = ["(prefers-color-scheme: dark)", "print"];

// A text that changes with the colour scheme and when the page is printed: canvases are drawn again with it.
export function useScheme() {
  const read = () => QUERIES.map((query) => window.matchMedia(query).matches).join();
  const [scheme, setScheme] = useState(read);
  useEffect(() => {
    const queries = QUERIES.map((query) => window.matchMedia(query));
    const update = () => setScheme(read());
    for (const query of queries) query.addEventListener("change", update);
    return () => { for (const query of queries) query.removeEventListener("change", update); };
  }, []);
  return scheme;
}

// The colours that the style sheet gives the page.
export function inks() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["ink", "faint", "line", "paper", "accent"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
