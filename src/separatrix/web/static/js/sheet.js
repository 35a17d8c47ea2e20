// Style sheets that a view loads, and links that stay on the page.

import { html, useEffect } from "./framework.js";
import { addressOf, go } from "./address.js";

export function useSheet(href) {
  useEffect(() => {
    if (document.querySelector(`link[href="${href}"]`)) return;
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href }));
  }, [href]);
}

export function Link({ to, children, ...attributes }) {
  const address = typeof to === "string" ? to : addressOf(to);
  const follow = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(address);
  };
  return html`<a href=${address} onClick=${follow} ...${attributes}>${children}</a>`;
}
