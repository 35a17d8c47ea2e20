// Small parts that views share: copying, fields with the error beside them, numbers for people, the looks of
// mechanisms, progress with a way to cancel.

import { html, useEffect, useId, useRef, useState } from "./framework.js";
import { get } from "./api.js";

export function CopyButton({ text, label }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setSaid("Copied");
    } catch {
      setSaid("Not allowed");
    }
    setTimeout(() => setSaid(""), 1500);
  };
  return html`<button type="button" class="quiet" onClick=${copy}>${label}<span class="said" aria-live="polite">${said && ` · ${said}`}</span></button>`;
}

// A labelled field that tells its value when it is changed for good (Enter, or leaving it).
export function Field({ label, value, onChange, problem, hint, ...rest }) {
  const id = useId();
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const settle = (event) => event.target.value !== String(value) && onChange(event.target.value);
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <input id=${id} value=${typed} onInput=${(event) => setTyped(event.target.value)} onChange=${settle}
      aria-invalid=${problem ? "true" : undefined} aria-describedby=${problem || hint ? `${id}-said` : undefined}
      spellcheck="false" autocomplete="off" ...${rest} />
    ${(problem || hint) && html`<p id=${`${id}-said`} class=${problem ? "problem" : "hint"} role=${problem ? "alert" : undefined}>${problem || hint}</p>`}
  </div>`;
}

export function Choice({ label, value, options, onChange }) {
  const id = useId();
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${options.map((each) => {
        const [name, shown] = Array.isArray(each) ? each : [each, each];
        return html`<option key=${name} value=${name} selected=${name === value}>${shown}</option>`;
      })}
    </select>
  </div>`;
}

// How far slow work is, and a way to end it.
export function Progress({ step, onCancel }) {
  const known = step && step.total;
  const text = known ? `${step.done.toLocaleString("en")} of ${step.total.toLocaleString("en")}${step.seconds ? `, about ${Math.max(1, Math.round(step.seconds))} s in all` : ""}` : (step?.what ?? "computing");
  return html`<div class="progress" role="status">
    <progress max=${known ? step.total : undefined} value=${known ? step.done : undefined} aria-label="Progress"></progress>
    <span>${text}</span>
    ${onCancel && html`<button type="button" class="quiet" onClick=${onCancel}>Cancel</button>`}
  </div>`;
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

// A number for people, as the command line spells it: 0.999755, 1.6556×10⁻⁶.
export function forPeople(value, digits = 6) {
  if (value === null || value === undefined || Number.isNaN(value)) return "not known";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e6) return String(Number(value.toPrecision(digits))).replace("-", "−");
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const power = `10${String(Number(exponent)).replace(/./g, (each) => RAISED[each])}`;
  const short = String(Number(mantissa)).replace("-", "−");
  return short === "1" ? power : `${short}×${power}`;
}

let looks = null;

// Colours and formulas of mechanisms by spelling: the same in every figure. Null until they are there.
export function useLooks() {
  const [known, setKnown] = useState(looks);
  useEffect(() => {
    if (!looks) get("/looks").then((rows) => { looks = rows; setKnown(rows); }, () => {});
  }, []);
  return known;
}

export function colourOf(known, mechanism) {
  const found = known?.find((each) => each.spelled === mechanism) ?? known?.find((each) => each.name === mechanism.split(":")[0]);
  return found?.colour ?? "var(--ink)";
}

// The size of an element, as it changes.
export function useSize() {
  const ref = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setSize({ width: entry.contentRect.width, height: entry.contentRect.height }));
    if (ref.current) watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return [ref, size];
}

// Whether the page is dark now; canvases draw again when it changes.
export function useDark() {
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const change = (event) => setDark(event.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return dark;
}
