// Parts that views share: buttons that copy, fields with their error, progress with a way to cancel, and the colours of
// mechanisms.

import { html, useEffect, useId, useState } from "./framework.js";
import { get } from "./api.js";

export function CopyButton({ text, label }) {
  const [state, setState] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setState("Copied");
    } catch {
      setState("Not allowed");
    }
    setTimeout(() => setState(""), 1500);
  };
  return html`<button type="button" class="quiet" onClick=${copy}>${label}<span class="said" aria-live="polite">${state && ` · ${state}`}</span></button>`;
}

// A labelled field that reports its value when it is final: on Enter, or when the field loses the focus.
export function Field({ label, value, onChange, problem, hint, ...attributes }) {
  const id = useId();
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  const settle = (event) => event.target.value !== String(value) && onChange(event.target.value);
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <input id=${id} value=${draft} onInput=${(event) => setDraft(event.target.value)} onChange=${settle}
      aria-invalid=${problem ? "true" : undefined} aria-describedby=${problem || hint ? `${id}-help` : undefined}
      spellcheck="false" autocomplete="off" ...${attributes} />
    ${(problem || hint) && html`<p id=${`${id}-help`} class=${problem ? "problem" : "hint"} role=${problem ? "alert" : undefined}>${problem || hint}</p>`}
  </div>`;
}

// `options` are values, or pairs of a value and its text.
export function Choice({ label, value, options, onChange }) {
  const id = useId();
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${options.map((option) => {
        const [name, text] = Array.isArray(option) ? option : [option, option];
        return html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`;
      })}
    </select>
  </div>`;
}

// The progress of slow work, and a button that cancels it.
export function Progress({ step, onCancel }) {
  const total = step?.total;
  const remaining = step?.seconds ? `, about ${Math.max(1, Math.round(step.seconds))} s in all` : "";
  const text = total ? `${step.done.toLocaleString("en")} of ${total.toLocaleString("en")}${remaining}` : (step?.what ?? "computing");
  return html`<div class="progress" role="status">
    <progress max=${total || undefined} value=${total ? step.done : undefined} aria-label="Progress"></progress>
    <span>${text}</span>
    ${onCancel && html`<button type="button" class="quiet" onClick=${onCancel}>Cancel</button>`}
  </div>`;
}

let looks = null;

// Colours and formulas of mechanisms by spelling, the same in every figure; null until they are loaded.
export function useLooks() {
  const [known, setKnown] = useState(looks);
  useEffect(() => {
    if (!looks) get("/looks").then((rows) => { looks = rows; setKnown(rows); }, () => {});
  }, []);
  return known;
}

export function colourOf(known, mechanism) {
  const look = known?.find(({ spelled }) => spelled === mechanism) ?? known?.find(({ name }) => name === mechanism.split(":")[0]);
  return look?.colour ?? "var(--ink)";
}
