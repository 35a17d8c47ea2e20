// What is proved for every n at a point, with its certificate. Where no proof is known, the server says why.

import { html, useEffect, useState } from "./framework.js";
import { query } from "./address.js";
import { get } from "./api.js";
import { Progress } from "./parts.js";

// The sentences of a proof without the name of the mechanism, with typeset relations.
export function describeProof({ mechanism, statement, final_statement: finally_ }) {
  const sentences = [statement.slice(mechanism.length + 1), finally_].filter(Boolean);
  return sentences.map((text) => `${text[0].toUpperCase()}${text.slice(1).replaceAll(">=", "≥").replaceAll("<=", "≤")}.`);
}

export function EveryN({ construction, mechanism, words, settled = true, open = null }) {
  const path = `${[construction, mechanism].map(encodeURIComponent).join("/")}${query(words)}`;
  const [state, setState] = useState({});
  useEffect(() => {
    if (!settled) return undefined;
    const controller = new AbortController();
    get(`/prove/${path}`, { signal: controller.signal, step: (step) => setState({ path, step }) }).then(
      (proof) => setState({ path, proof }),
      (problem) => problem.name !== "AbortError" && setState({ path, problem }),
    );
    return () => controller.abort();
  }, [path, settled]);
  const { proof, step, problem } = state.path === path ? state : {};
  if (step) return html`<${Progress} step=${{ what: "proving it for every n" }} />`;
  if (problem) return open && html`<span title=${problem.message}>${open}</span>`;
  if (!proof) return null;
  return html`<div class="every-n">
    ${describeProof(proof).map((sentence) => html`<p key=${sentence}>${sentence}</p>`)}
    <p class="hint">Proved for every admissible n; d, m and all amplitudes are fixed. <a href=${`/api/v1/files/proof/${path}`} download title="A certificate, for separatrix check">Download the proof</a></p>
  </div>`;
}
