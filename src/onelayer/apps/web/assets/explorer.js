// The explorer: the page starts here. It opens with a layer, then follows what is typed, dragged and clicked.

import { fill, fromLink, listen, parse } from "./form.js";
import { steppable } from "./here.js";
import { relink, repaint, view } from "./layer_view.js";
import { build, cancel, connect, dragged, now, typed } from "./live.js";
import { showError } from "./state.js";
import { NoAnswer } from "./stream.js";
import { listenToTheme } from "./theme.js";
import { redraw, stop, train } from "./training.js";

const at = (id) => document.getElementById(id);

// The view that a link describes, if there is one.
function restore() {
  const found = fromLink();
  if (!found) return false;
  fill(found.given);
  parse();
  build({ pressed: performance.now(), x: found.point });
  return true;
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const name = button.textContent;
  button.addEventListener("click", async () => {
    const place = at(button.dataset.copy), board = navigator.clipboard; // missing on unencrypted addresses
    const copied = board ? await board.writeText(place.textContent).then(() => true, () => false) : false;
    if (!copied) getSelection().selectAllChildren(place);
    button.textContent = copied ? "Copied" : "Selected: press Ctrl+C";
    setTimeout(() => { button.textContent = name; }, 2000);
  });
}

let later = 0;
document.addEventListener("moved", () => { clearTimeout(later); later = setTimeout(relink, 250); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") cancel(); });
window.addEventListener("hashchange", restore);
at("cancel").addEventListener("click", cancel);
at("train").addEventListener("click", train);
at("stop").addEventListener("click", stop);

connect(view);
steppable(at("picture"));
listenToTheme(() => { repaint(); redraw(); });
const about = await fetch("/api/about").then((response) => response.json()).catch(() => { showError(new NoAnswer()); throw new NoAnswer(); });
listen(about.presets, { typed, dragged, build: now });
if (!restore()) {
  fill(about.presets[0]);
  at("preset").value = "0";
  parse();
  build({ pressed: 0, path: "/api/opening" });
}
document.body.dataset.ready = "yes";
