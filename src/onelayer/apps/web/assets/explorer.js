// The explorer: from a key press to a certified surface, and everything that can be asked of the layer.

import { events, answer, Refusal } from "./stream.js";
import { fill, fromLink, linkOf, listen, parse, wish } from "./form.js";
import { clickable, cover, goTo, look, point, tell } from "./point.js";
import { against, redraw, stop, train } from "./training.js";

const at = (id) => document.getElementById(id);
const sizes = new Map(); // function and options → the layers that were built
let running = null, shown = null, restored = null;

async function build() {
  const started = performance.now(), asked = wish();
  if (running) running.abort();
  const own = (running = new AbortController());
  busy(true);
  complain(null);
  try {
    for await (const event of events("/api/build", asked, own.signal)) {
      if (event.event === "queued") stage(`waiting: place ${event.position} in the queue`, null);
      if (event.event === "started") stage("starting", null);
      if (event.event === "progress") stage(event.stage, event.share);
      if (event.event === "error") throw new Refusal(event);
      if (event.event === "result") display(event, asked, started);
      if (event.event === "folder") offer(event.key);
      if (event.event === "covering") { cover(event.covering); tell(); }
    }
    stage("", null);
  } catch (error) {
    if (error.name === "AbortError") { if (running === own) stage("cancelled", null); }
    else { stage("", null); complain(error instanceof Refusal ? error : { asked: "an answer of the server", found: "none", change: "start it again" }); }
  } finally {
    if (running === own) { running = null; busy(false); }
  }
}

function busy(yes) {
  at("cancel").disabled = !yes;
  at("progress").hidden = !yes;
  document.body.dataset.busy = yes ? "yes" : "no";
}

function stage(text, share) {
  at("stage").textContent = share === null ? text : `${text} …`;
  if (share === null) at("progress").removeAttribute("value"); else at("progress").value = share;
}

function complain(error) {
  const place = at("error");
  place.hidden = !error;
  place.replaceChildren();
  for (const part of error ? ["asked", "found", "change"] : []) {
    const name = document.createElement("b");
    name.textContent = `${part}: `;
    place.append(name, error[part], document.createElement("br"));
  }
}

function display(found, asked, started) {
  shown = { found, asked, text: JSON.stringify(found.data) };
  at("outcome").hidden = false;
  at("verdict").textContent = found.verdict;
  at("verdict").className = `verdict ${found.verdict}`;
  at("statement").textContent = found.statement;
  at("facts").innerHTML = found.facts; // made by the server, every text in it escaped
  at("timing").textContent = "";
  at("code").textContent = found.code;
  offer(null);
  look(found);
  against(found, asked);
  delete document.body.dataset.shown;
  document.addEventListener("drawn", () => {
    const seconds = (performance.now() - started) / 1000;
    at("timing").textContent = `${seconds.toFixed(2)} s from key press to certified surface, ${found.built.toFixed(2)} s of it to build and prove`;
  }, { once: true });
  paint(restored).then(() => {
    remember(found, asked);
    relink();
    document.body.dataset.shown = "yes";
  });
  restored = null;
}

// Sections and figures of the layer that is shown, in the colours of the theme.
async function paint(x) {
  for (const [name, body] of Object.entries(shown.found.sections)) document.querySelector(`#${name} .body`).innerHTML = body;
  await show(JSON.parse(shown.text));
  if (x && DATA.layer && x.length === DATA.layer.start.length) goTo(x);
}

document.addEventListener("drawn", ({ target }) => {
  const [name, number] = target.id.split("-");
  if (["function", "error"].includes(name)) clickable(target, Number(number));
  if (name === "headmap") clickable(target, 0);
  if (target.id === "error-0") tell();
});

function offer(key) {
  const link = at("download");
  if (key) { link.href = `/api/folders/${key}`; link.download = "layer.zip"; } else link.removeAttribute("href");
  link.setAttribute("aria-disabled", key ? "false" : "true");
}

function remember(found, asked) {
  const { tolerance, ...rest } = asked, key = JSON.stringify(rest);
  if (!sizes.has(key)) sizes.set(key, new Map());
  sizes.get(key).set(tolerance, found);
  curve(sizes.get(key));
}

function curve(layers) {
  const rows = [...layers].sort(([a], [b]) => b - a), good = ([, f]) => f.verdict === "CERTIFIED";
  const line = {
    x: rows.map(([e]) => e), y: rows.map(([, f]) => f.units), mode: "lines+markers", line: { color: BLUE },
    marker: { size: 10, color: rows.map((r) => (good(r) ? GREEN : GREY)), symbol: rows.map((r) => (good(r) ? "circle" : "x")) },
    customdata: rows.map(([, f]) => [f.parameters, f.verdict, f.bound]),
    hovertemplate: "ε = %{x}: %{y} units, %{customdata[0]} parameters<br>%{customdata[1]}, bound %{customdata[2]}<extra></extra>",
  };
  const layout = {
    template: "plotly_white", font: FONT, height: 320, margin: { l: 60, r: 16, t: 12, b: 50 },
    xaxis: { type: "log", autorange: "reversed", title: { text: "tolerance ε" }, exponentformat: "power" }, yaxis: { title: { text: "units" }, rangemode: "tozero" },
  };
  Plotly.react("curve", [line], themed(layout), LOOK);
}

function relink() {
  if (!shown) return;
  const link = linkOf(shown.asked, point());
  at("link").textContent = link;
  history.replaceState(null, "", link.slice(location.origin.length));
}

let later = 0;
document.addEventListener("moved", () => { clearTimeout(later); later = setTimeout(relink, 250); });

function restore() {
  const found = fromLink();
  if (!found) return false;
  fill(found.given);
  restored = found.point;
  parse();
  build();
  return true;
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  at("theme").textContent = name === "dark" ? "Light" : "Dark";
  at("theme").setAttribute("aria-pressed", name === "dark");
  const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  THEME = { ink: colour("--ink"), line: colour("--line") };
  if (!shown) return;
  paint(point());
  const { tolerance, ...rest } = shown.asked;
  curve(sizes.get(JSON.stringify(rest)));
  redraw();
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(at(button.dataset.copy).textContent).catch(() => {});
    const text = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = text; }, 1200);
  });
}
at("cancel").addEventListener("click", () => running?.abort());
at("train").addEventListener("click", train);
at("stop").addEventListener("click", stop);
at("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") running?.abort(); });
window.addEventListener("hashchange", restore);

theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const about = await fetch("/api/about").then((response) => response.json());
listen(about.presets, build);
if (!restore()) { fill(about.presets[0]); at("preset").value = "0"; await parse(); }
document.body.dataset.ready = "yes";
const dry = document.createElement("div"); // the first surface takes longer: drawn once out of sight
dry.className = "dry";
document.body.append(dry);
Plotly.newPlot(dry, [{ type: "surface", z: [[0, 1], [1, 0]], showscale: false }], { width: 100, height: 100 }).then(() => { Plotly.purge(dry); dry.remove(); });
