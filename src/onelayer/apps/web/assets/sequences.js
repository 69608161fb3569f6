// The page of layers for sequences: an entry of the menu, with its layer computed here.

import { listenToTheme } from "./theme.js";

const at = (id) => document.getElementById(id);

async function open(name) {
  document.body.dataset.shown = "no";
  const response = await fetch(`/api/sequences/${name}`).catch(() => null);
  at("error").hidden = Boolean(response?.ok);
  if (!response?.ok) { at("error").textContent = "The server does not answer. Start it again, then choose again."; return; }
  const found = await response.json();
  if (at("menu").value !== name) return; // something else was chosen meanwhile
  at("shown").hidden = false;
  at("title").textContent = found.title;
  document.querySelectorAll("#sequence-part .js-plotly-plot").forEach(clear);
  for (const [id, part] of [["intro", "intro"], ["facts", "facts"], ["sequence-part", "sequence"], ["story", "story"], ["certificate-part", "certificate"]]) {
    at(id).innerHTML = found[part]; // made by the server, every text in it escaped
  }
  showSequence(found.record);
  document.body.dataset.shown = "yes";
}

listenToTheme(() => { if (document.body.dataset.shown === "yes") drawChoice(); });
at("menu").addEventListener("change", () => open(at("menu").value));
await open(at("menu").value);
document.body.dataset.ready = "yes";
