// The explorer: from a key press to a certified surface, and everything that can be done with the layer.

import { events, NoAnswer, Refusal } from "./stream.js";
import { fill, fromLink, linkOf, listen, parse, request } from "./form.js";
import { clickable, goTo, point, setBoxes, setLayer, update } from "./point.js";
import { speak } from "./speech.js";
import { listenToTheme } from "./theme.js";
import { redraw, setOpponent, stop, train } from "./training.js";

const at = (id) => document.getElementById(id);
const sizes = new Map(); // function and options → tolerance → the layer that was built
let running = null, shown = null;

// Build what the form asks for, and show it at the point x if one is given.
async function build(x = null) {
  const started = performance.now(), asked = request();
  if (running) running.abort();
  const own = (running = new AbortController());
  let found = null, boxes = null;
  busy(true);
  showError(null);
  speak("building");
  try {
    for await (const event of events("/api/build", asked, own.signal)) {
      if (event.event === "queued") stage(`waiting: place ${event.position} in the queue`, null);
      if (event.event === "started") stage("starting", null);
      if (event.event === "progress") stage(event.stage, event.share);
      if (event.event === "error") throw new Refusal(event);
      if (event.event === "result") display((found = event), asked, started, x);
      if (event.event === "folder") offer(event.key);
      if (event.event === "covering") boxes = event.covering;
    }
    stage("", null);
  } catch (error) {
    if (running === own) handle(error);
  } finally {
    if (found) setBoxes(found, boxes);
    if (running === own) { running = null; busy(false); }
  }
}

function handle(error) {
  const cancelled = error.name === "AbortError";
  stage(cancelled ? "cancelled" : "", null);
  if (cancelled) speak("cancelled");
  else if (error instanceof Refusal) showError(error);
  else throw error;
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

function showError(error) {
  const place = at("error");
  place.hidden = !error;
  place.replaceChildren();
  for (const part of error ? ["asked", "found", "change"] : []) {
    const name = document.createElement("b");
    name.textContent = `${part}: `;
    place.append(name, error[part], document.createElement("br"));
  }
}

function display(found, asked, started, x) {
  const same = shown && ["formula", "domain"].every((name) => shown.asked[name] === asked[name]);
  const own = (shown = { found, asked, started, text: JSON.stringify(found.data) });
  delete found.data;
  at("outcome").hidden = false;
  at("verdict").textContent = found.headline;
  at("verdict").className = `verdict ${found.verdict}`;
  at("of").textContent = `f = ${asked.formula}, on ${asked.domain}, ε = ${asked.tolerance}`;
  at("statement").textContent = found.statement;
  at("facts").innerHTML = found.facts; // made by the server, every text in it escaped
  at("timing").textContent = "";
  at("code").textContent = found.code;
  speak(`${found.headline}. ${found.statement}`);
  offer(null);
  setLayer(found);
  setOpponent(found, asked);
  remember(found, asked);
  delete document.body.dataset.shown;
  paint(same, x).then(() => {
    if (shown !== own) return;
    curve();
    relink();
    document.body.dataset.shown = "yes";
  });
}

// Draw the sections and figures of the current layer in the colours of the theme; for the same function, sliders keep their place.
async function paint(same, x) {
  const own = shown, controls = () => [...document.querySelectorAll("section .body :is(input, select, summary)")];
  const before = controls(), focused = before.indexOf(document.activeElement);
  for (const [name, body] of Object.entries(own.found.sections)) {
    const place = document.querySelector(`#${name} .body`);
    place.querySelectorAll(".js-plotly-plot").forEach((figure) => { if (!(figure.id in DATA.figures) || figure.dataset.drawn) clear(figure); });
    place.innerHTML = body; // made by the server, every text in it escaped
  }
  const after = controls();
  if (same && after.length === before.length) {
    after.forEach((control, i) => {
      if (control.value === before[i].value) return;
      control.value = before[i].value;
      control.form.dataset.moved = "yes";
    });
    after[focused]?.focus({ preventScroll: true });
  }
  await show(JSON.parse(own.text));
  if (shown === own && x && x.length === own.found.names.length) goTo(x);
}

document.addEventListener("drawn", ({ target }) => {
  const [name, number] = target.id.split("-");
  if (["function", "error"].includes(name)) clickable(target, Number(number));
  if (name === "headmap") clickable(target);
  if (name === "error") update();
  if (target.id === "function-0" && shown.started) {
    const seconds = (performance.now() - shown.started) / 1000, { built, verdict } = shown.found;
    const to = verdict === "CERTIFIED" ? "certified surface" : "surface";
    at("timing").textContent = `${seconds.toFixed(2)} s from key press to ${to}, ${built.toFixed(2)} s of it to build and prove`;
    shown.started = null;
  }
});

function offer(key) {
  const link = at("download");
  if (key) { link.href = `/api/folders/${key}`; link.download = "layer.zip"; } else link.removeAttribute("href");
  link.setAttribute("aria-disabled", key ? "false" : "true");
}

function layersLike({ tolerance, ...rest }) {
  const key = JSON.stringify(rest);
  if (!sizes.has(key)) sizes.set(key, new Map());
  return sizes.get(key);
}

function remember({ units, parameters, verdict, bound, bound_text: text }, asked) {
  layersLike(asked).set(asked.tolerance, { units, parameters, verdict, proved: bound === null ? "nothing proved" : `bound ${text}` });
}

function curve() {
  const rows = [...layersLike(shown.asked)].sort(([a], [b]) => b - a), good = ([, f]) => f.verdict === "CERTIFIED";
  const line = {
    x: rows.map(([e]) => e), y: rows.map(([, f]) => f.units), mode: "lines+markers", line: { color: BLUE },
    marker: { size: 10, color: rows.map((r) => (good(r) ? GREEN : GREY)), symbol: rows.map((r) => (good(r) ? "circle" : "x")) },
    customdata: rows.map(([e, f]) => [f.parameters, f.verdict, f.proved, String(e)]),
    hovertemplate: "ε = %{customdata[3]}: %{y} units, %{customdata[0]} parameters<br>%{customdata[1]}, %{customdata[2]}<extra></extra>",
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
  parse();
  build(found.point);
  return true;
}

function repaint() {
  if (!shown) return;
  paint(true, null);
  curve();
  redraw();
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
at("cancel").addEventListener("click", () => running?.abort());
at("train").addEventListener("click", train);
at("stop").addEventListener("click", stop);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") running?.abort(); });
window.addEventListener("hashchange", restore);

listenToTheme(repaint);
const about = await fetch("/api/about").then((response) => response.json()).catch(() => { showError(new NoAnswer()); throw new NoAnswer(); });
listen(about.presets, () => build());
if (!restore()) { fill(about.presets[0]); at("preset").value = "0"; await parse(); }
document.body.dataset.ready = "yes";
const warmUp = document.createElement("div"); // the first surface takes longer, so one is drawn out of sight
warmUp.className = "offscreen";
document.body.append(warmUp);
Plotly.newPlot(warmUp, [{ type: "surface", z: [[0, 1], [1, 0]], showscale: false }], { width: 100, height: 100 }).then(() => { Plotly.purge(warmUp); warmUp.remove(); });
