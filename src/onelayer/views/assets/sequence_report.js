// The report of a layer for sequences: all data is in the page, nothing is requested. Its colours follow the reader's scheme.

"use strict";

function takeTheme() {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  THEME = { ink: colour("--ink"), line: colour("--line") };
}

const PAGE = JSON.parse(byId("data").textContent);
takeTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  takeTheme();
  if (SEQUENCE) drawChoice();
  Object.keys(DATA.figures).filter((id) => byId(id).dataset.drawn).forEach(drawNow);
});
if (PAGE.sequence) showSequence(PAGE.sequence);
if (PAGE.sequence?.language) showTyping();
show(PAGE).then(() => { document.body.dataset.ready = "yes"; });
