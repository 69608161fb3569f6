// A layer on the page: its pictures and sections in the colours of the theme, its size beside others, its folder and link.

import { linkOf } from "./form.js";
import { hoverable, keptPoint, lookAt } from "./here.js";
import { clickable, point, setLayer, update } from "./point.js";
import { settle } from "./state.js";
import { setOpponent } from "./training.js";

const at = (id) => document.getElementById(id);
const sizes = new Map(); // function and options → tolerance → the layer that was built
const FIRST = ["function-0", "error-0"], ROOM = 78, LEAST_HEIGHT = 230, PHONE_HEIGHT = 330; // pixels; ROOM is for what stands around two pictures
const HOVER = "(%{x:.4g}, %{y:.4g}): %{z:.4g}<extra></extra>";
export const view = { shown: null, display, offer };

async function display({ found, asked, coarse, started, x }) {
  const same = view.shown && ["formula", "domain"].every((name) => view.shown.asked[name] === asked[name]);
  const look = x?.length === found.names.length ? x : same && view.shown.coarse ? keptPoint() : null; // what a coarse layer was looked at
  const own = (view.shown = { found, asked, coarse, started, text: JSON.stringify(found.data) });
  delete found.data;
  at("outcome").hidden = false;
  settle(own);
  setLayer(found);
  if (!coarse) {
    at("code").textContent = found.code;
    offer(null);
    setOpponent(found, asked);
    remember(found, asked);
  }
  delete document.body.dataset.shown;
  await paint(same && !look);
  if (view.shown === own && (look || coarse || !same)) lookAt(look);
  if (view.shown !== own || coarse) return;
  curve();
  relink();
  document.body.dataset.shown = "yes";
}

// Draw the sections and figures of the current layer; for the same function, sliders keep their place.
async function paint(same) {
  const own = view.shown, controls = () => [...document.querySelectorAll("section .body :is(input, select, summary)")];
  const before = controls(), focused = before.indexOf(document.activeElement);
  for (const [name, body] of Object.entries(own.found.sections)) refill(document.querySelector(`#${name} .body`), body);
  const after = controls();
  if (same && after.length === before.length) {
    after.forEach((control, i) => {
      if (control.value === before[i].value) return;
      control.value = before[i].value;
      control.form.dataset.moved = "yes";
    });
    after[focused]?.focus({ preventScroll: true });
  }
  const data = JSON.parse(own.text);
  fit(data.figures, `${own.asked.formula} on ${own.asked.domain}`);
  await show(data);
}

// New HTML around figures that are there already: drawing into them again is quicker, and a browser has few WebGL contexts.
function refill(place, body) {
  const fresh = document.createElement("template");
  fresh.innerHTML = body; // made by the server, every text in it escaped
  for (const figure of place.querySelectorAll(".figure")) {
    const next = fresh.content.getElementById(figure.id);
    if (next) { next.replaceWith(figure); delete figure.dataset.drawn; } else if (figure.matches(".js-plotly-plot")) clear(figure);
  }
  place.replaceChildren(fresh.content);
}

// The first two pictures share the height of a wide screen; a camera that was turned stays for the same function.
function fit(figures, name) {
  const wide = matchMedia("(min-width: 1000px)").matches, top = at("function").getBoundingClientRect().top + scrollY;
  const height = (innerHeight - top - ROOM) / (FIRST.filter(at).length || 1), shown = FIRST.filter((id) => figures[id]); // a coarse layer leaves room for its error
  for (const { layout } of Object.values(figures)) {
    layout.uirevision = name;
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: GREY, activecolor: BLUE, orientation: "v" };
  }
  if (wide) for (const id of shown) tighten(figures[id], Math.round(Math.min(560, Math.max(LEAST_HEIGHT, height))));
  else for (const id of shown) figures[id].layout.height = Math.min(figures[id].layout.height, PHONE_HEIGHT); // surfaces are stacked
}

// Less room for a picture: narrow margins, fewer and smaller numbers on the axes of surfaces.
function tighten({ data, layout }, height) {
  layout.height = height;
  for (const trace of data.filter(({ type, hoverinfo }) => ["surface", "heatmap"].includes(type) && hoverinfo !== "skip")) trace.hovertemplate = HOVER;
  if (data.every(({ type }) => type === "surface")) layout.margin = { l: 0, r: 0, t: 24, b: 0 };
  else layout.margin = { ...layout.margin, t: 24, b: 40 };
  for (const name of Object.keys(layout).filter((key) => key.startsWith("scene"))) {
    for (const side of ["xaxis", "yaxis", "zaxis"]) {
      const axis = layout[name][side];
      layout[name][side] = { ...axis, nticks: 5, tickfont: { size: 11 }, title: { ...axis.title, font: { size: 13 } } };
    }
  }
}

document.addEventListener("drawn", ({ target }) => {
  const [name, number] = target.id.split("-"), { shown } = view, first = !target.dataset.listening;
  target.dataset.listening = "yes";
  delete target.given;
  if (first && ["function", "error"].includes(name)) { clickable(target, Number(number)); hoverable(target, Number(number)); }
  if (first && name === "headmap") clickable(target);
  if (name === "error") update();
  if (target.id !== "function-0" || (shown?.started ?? null) === null) return;
  const seconds = (performance.now() - shown.started) / 1000;
  (window.timings ??= {})[shown.coarse ? "coarse" : "certified"] = seconds; // for measurements
  if (shown.coarse) return;
  const done = shown.found.verdict === "CERTIFIED" ? "proved" : "judged", since = shown.started ? "since the last change" : "since the page opened";
  at("timing").textContent = `Built and ${done} in ${shown.found.built.toFixed(2)} s (${seconds.toFixed(2)} s ${since})`;
  shown.started = null;
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

export function curve() {
  const rows = [...layersLike(view.shown.asked)].sort(([a], [b]) => b - a), good = ([, f]) => f.verdict === "CERTIFIED";
  const line = {
    x: rows.map(([e]) => e), y: rows.map(([, f]) => f.units), mode: "lines+markers", line: { color: BLUE },
    marker: { size: 10, color: rows.map((r) => (good(r) ? GREEN : GREY)), symbol: rows.map((r) => (good(r) ? "circle" : "x")) },
    customdata: rows.map(([e, f]) => [f.parameters, f.verdict, f.proved, String(e)]),
    hovertemplate: "ε = %{customdata[3]}: %{y} units, %{customdata[0]} parameters<br>%{customdata[1]}, %{customdata[2]}<extra></extra>",
  };
  const layout = {
    font: FONT, height: 320, margin: { l: 60, r: 16, t: 12, b: 50 },
    xaxis: { type: "log", autorange: "reversed", title: { text: "tolerance ε" }, exponentformat: "power" }, yaxis: { title: { text: "units" }, rangemode: "tozero" },
  };
  Plotly.react("curve", [line], themed(layout), LOOK);
}

export function relink() {
  if (!view.shown || view.shown.coarse) return;
  const link = linkOf(view.shown.asked, point());
  at("link").textContent = link;
  history.replaceState(null, "", link.slice(location.origin.length));
}

export function repaint() {
  if (!view.shown) return;
  paint(true);
  if (!view.shown.coarse) curve();
}
