// What stands on the page: a proved layer, a coarse one, or one that is out of date. Only the first ever looks proved.

import { speak } from "./speech.js";

const at = (id) => document.getElementById(id);
const described = ({ formula, domain, tolerance }) => `f = ${formula}, on ${domain}, ε = ${tolerance}`;
let shown = null; // what was drawn last: {found, asked, coarse}

export function badge(text, kind) {
  at("verdict").textContent = text;
  at("verdict").className = `verdict ${kind}`;
}

// What is drawn is what the form asks for.
export function settle(drawn = shown) {
  shown = drawn;
  if (!shown) return;
  const { found, asked, coarse } = shown;
  document.body.dataset.state = coarse ? "coarse" : "current";
  at("below").inert = coarse;
  at("of").textContent = described(asked);
  at("facts").innerHTML = found.facts; // made by the server, every text in it escaped
  if (coarse) {
    badge("COARSE, NOT PROVED", "coarse");
    at("statement").textContent = "A quick layer, drawn at once: its error was only looked at, and nothing is proved.";
    at("timing").textContent = "";
    return;
  }
  badge(found.headline, found.verdict);
  at("statement").textContent = found.statement;
  speak(`${found.headline}. ${found.statement}`);
}

// What is drawn belongs to another request: it is dimmed, and nothing above it is green.
export function outdate(refused = false) {
  document.body.dataset.state = refused ? "refused" : "old";
  if (!shown) return;
  at("below").inert = shown.coarse;
  badge(shown.coarse ? "EARLIER, NOT PROVED" : "EARLIER LAYER", "old");
  at("of").textContent = `${refused ? "Not of the formula in the form" : "Being replaced"}: ${described(shown.asked)}`;
  at("timing").textContent = "";
}

export function stage(text, share = null) {
  at("stage").textContent = share === null ? text : `${text} …`;
  if (share === null) at("progress").removeAttribute("value"); else at("progress").value = share;
}

export function busy(yes) {
  at("cancel").disabled = !yes;
  at("progress").hidden = !yes;
  document.body.dataset.busy = yes ? "yes" : "no";
}

export function showError(error) {
  const place = at("error");
  place.hidden = !error;
  place.replaceChildren();
  for (const part of error ? ["asked", "found", "change"] : []) {
    const name = document.createElement("b");
    name.textContent = `${part}: `;
    place.append(name, error[part], document.createElement("br"));
  }
}
