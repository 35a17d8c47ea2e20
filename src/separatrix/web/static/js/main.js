// The shell: the header with the views, the view that the address names, and a warning when the server does not answer.

import { html, render, useEffect, useState } from "./framework.js";
import { commandOf, usePlace } from "./address.js";
import { get, watchServer } from "./api.js";
import { CopyButton } from "./parts.js";
import { Link } from "./sheet.js";
import { storeOption } from "./store-words.js";

// A view is a module with `View({ place })`; it is loaded when it is first shown.
const VIEWS = [
  { name: "See it happen", commands: ["", "verdict"], start: "/", load: () => import("./see.js") },
  { name: "Map", commands: ["map"], start: "/map/spike/softmax,linear?a1=0.5:1.5:200&n=1e3:1e18:200:log", load: () => import("./map.js") },
  { name: "Mechanisms", commands: ["atlas", "assess"], start: "/atlas", load: () => import("./mechanisms.js") },
  { name: "Trained", commands: ["learn"], start: "/learn", load: () => import("./trained.js") },
  { name: "Store", commands: ["results", "compare"], start: "/results", load: () => import("./store.js") },
];

// Commands that read or fill a store.
const STORE_COMMANDS = ["results", "compare", "learn"];

function viewOf(place) {
  return VIEWS.find((view) => view.commands.includes(place.command)) ?? VIEWS[0];
}

function Shell() {
  const place = usePlace();
  const view = viewOf(place);
  const [Loaded, setLoaded] = useState(null);
  const [reachable, setReachable] = useState(true);
  const [failure, setFailure] = useState("");
  const [store, setStore] = useState(null);
  useEffect(() => watchServer(setReachable), []);
  useEffect(() => { if (reachable) get("/about").then((about) => setStore(about.store), () => {}); }, [reachable]);
  useEffect(() => {
    let isCurrent = true;
    setFailure("");
    view.load().then(
      (module) => isCurrent && setLoaded({ view, View: module.View }),
      () => isCurrent && setFailure("This view could not be loaded. Is the explorer still running?"),
    );
    return () => { isCurrent = false; };
  }, [view, reachable]);
  useEffect(() => { document.title = `${view.name}: Separatrix`; }, [view]);
  const options = STORE_COMMANDS.includes(place.command) ? storeOption(store) : [];
  const command = place.command ? commandOf({ ...place, options: [...place.options, ...options] }) : commandOf({ command: "verdict", names: ["spike", "softmax,linear"], words: [], options: [] });
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <header class="head">
      <p class="brand"><${Link} to="/">Separatrix<//></p>
      <nav aria-label="Views">
        ${VIEWS.map((entry) => html`<${Link} key=${entry.name} to=${entry.start} aria-current=${entry === view ? "page" : undefined}>${entry.name}<//>`)}
      </nav>
      <div class="share">
        <${CopyButton} text=${() => window.location.href} label="Copy link" />
        <${CopyButton} text=${() => command} label="Copy command" />
      </div>
    </header>
    ${!reachable && html`<p class="gone" role="alert">The explorer does not answer. Start it again with <code>separatrix explore</code>; this page then continues by itself.</p>`}
    <main id="main" tabindex="-1">
      ${failure ? html`<p class="problem" role="alert">${failure}</p>`
        : Loaded?.view === view ? html`<${Loaded.View} key=${view.name} place=${place} reachable=${reachable} />`
        : html`<p class="waiting">Loading ${view.name} …</p>`}
    </main>
    <footer class="foot">
      <p>In a terminal: <code class="command">${command}</code></p>
      <p>“Blind” is about this reader with this threshold; “cannot” appears only where it is proved.
        Everything on this page is computed on this machine.</p>
    </footer>`;
}

render(html`<${Shell} />`, document.getElementById("page"));
document.querySelector("#page > .waiting")?.remove();

