// The point that is kept: the sliders move there, the layer is explained there, and the boxes of the proof around it are shown.

import { about, atMost, between, inside } from "./numbers.js";
import { speak } from "./speech.js";

let covering = null; // {patches: [{coordinates, lower, upper, low, high}], extra}; null: none; undefined: not known yet
export let view = null; // the layer
let now = null; // the point that is shown
const UP = 1 + 1e-9;

// Show another layer: what was said about the last one is cleared.
export function setLayer(found) {
  [view, now, covering] = [found, null, undefined];
  document.getElementById("box").textContent = "";
}

// The boxes of a layer's proof, if that layer is still shown. JSON has no ∞: null means not proved.
export function setBoxes(layer, found) {
  if (layer !== view) return;
  covering = found;
  if (found) {
    found.extra = found.extra.map((v) => v ?? Infinity);
    for (const patch of found.patches) {
      patch.high = patch.high.map((row) => row.map((v) => v ?? Infinity));
      patch.low = patch.low.map((row) => row.map((v) => v ?? -Infinity));
    }
  }
  update();
  document.dispatchEvent(new CustomEvent("proved"));
}

// Move the point along some variables; the sliders follow.
export function goTo(values, output) {
  if (!DATA.layer || !document.getElementById("movable")) return;
  for (const input of document.querySelectorAll("#movable input[type=range]")) {
    const value = values[Number(input.dataset.variable)];
    if (value !== undefined && Number.isFinite(value)) input.value = value;
  }
  const select = document.querySelector("#movable select");
  if (select && output !== undefined) select.value = output;
  movePoint();
}

// A click keeps the point; the page stays where it is.
export function clickable(place, number) {
  place.on("plotly_click", ({ points: [p] }) => {
    if (p.data.hoverinfo === "skip") return; // the sheets of the bound are not clickable
    if (number === undefined) goTo(amongHeads(p)); else goTo(inScene(p, number), outputOf(number));
  });
}

// The output that a picture shows.
export const outputOf = (number) => document.querySelector(`#scene-${number} select`)?.value;

// All variables: drawn ones from the picture, the others from its sliders, or at the centre of the domain.
export function inScene(p, number) {
  const drawn = view.drawn[number], values = view.ends[0].map((low, j) => low + (view.ends[1][j] - low) / 2);
  values[drawn[0]] = Number(p.x);
  if (drawn.length > 1) values[drawn[1]] = Number(p.y);
  const sliders = document.querySelectorAll(`#scene-${number} input[type=range]`), { stops } = DATA.scenes[number];
  const others = view.names.map((_, j) => j).filter((j) => !drawn.includes(j));
  sliders.forEach((slider, i) => { values[others[i]] = stops[i][Number(slider.value)]; });
  return values;
}

// A mark in the picture of the heads: its axes are variables, or it lies in the strip of one variable, at a share of its interval.
function amongHeads(p) {
  const { names, ends: [low, high] } = view, strip = names.indexOf(p.y);
  if (strip >= 0) return { [strip]: low[strip] + Number(p.x) * (high[strip] - low[strip]) };
  const values = {};
  for (const [axis, value] of [[p.xaxis, p.x], [p.yaxis, p.y]]) {
    const j = names.indexOf(axis?.title?.text);
    if (j >= 0) values[j] = Number(value);
  }
  return values;
}

// For every patch, the box with the best bound among those that contain x.
export function boxesAt(x) {
  if (!covering) return null;
  const found = covering.patches.map((patch) => {
    let best = null;
    patch.lower.forEach((lower, b) => {
      if (!patch.coordinates.every((j, i) => lower[i] <= x[j] && x[j] <= patch.upper[b][i])) return;
      const size = Math.max(...patch.high[b].map((h, o) => Math.max(h, -patch.low[b][o])));
      if (!best || size < best.size) best = { size, b };
    });
    return best && { coordinates: patch.coordinates, lower: patch.lower[best.b], upper: patch.upper[best.b], low: patch.low[best.b], high: patch.high[best.b] };
  });
  return found.every(Boolean) ? found : null;
}

// What is proved about |T − f| on these boxes, for one output: rounded up, and never more than on the whole domain.
export function boundOn(boxes, output) {
  const high = boxes.reduce((s, b) => s + b.high[output], 0), low = boxes.reduce((s, b) => s + b.low[output], 0);
  const adding = boxes.length * 2 ** -52 * boxes.reduce((s, b) => s + Math.max(Math.abs(b.high[output]), Math.abs(b.low[output])), 0);
  const bound = (Math.max(high, -low) * UP + adding + covering.extra[output]) * UP;
  return view.bound === null || bound <= view.bound ? bound : view.bound; // also if it is NaN
}

// What is proved about |T − f| at a point: in the boxes of the proof that hold it, or on the whole domain; null if nothing is.
export function boundAt(x, output) {
  if (view.bound === null || view.bound === undefined) return null;
  const boxes = boxesAt(x);
  if (!boxes) return { size: view.bound, text: view.bound_text, boxes };
  const size = boundOn(boxes, output), text = atMost(size);
  return { size, text: Number(text) < Number(view.bound_text) ? text : view.bound_text, boxes };
}

function description({ x, output, found }) {
  const { bound_text: wholeText, names } = view, proved = boundAt(x, output);
  if (!proved) return "Nothing is proved about this layer.";
  const { size, text, boxes } = proved, band = `so f(x) is between ${between(found.value - size, found.value + size).join(" and ")}`;
  if (!boxes) {
    const waiting = covering === undefined ? " The boxes of the proof are being looked up." : "";
    return `Proved on the whole domain: |T − f| ≤ ${wholeText}; ${band}.${waiting}`;
  }
  const side = (name, low, high) => `${name} from ${inside(low, high).join(" to ")}`;
  const where = boxes.map((box) => box.coordinates.map((j, i) => side(names[j], box.lower[i], box.upper[i])).join(", ")).join("; ");
  return `The proof's box here: ${where}. In it |T − f| ≤ ${text} is proved (${wholeText} on the whole domain); ${band}.`;
}

// The slopes of T here, by the page's own arithmetic, and what is proved about their distance from those of f on the whole domain.
function slopesHere({ x, output }) {
  if (!view.slope_text) return "";
  const own = x.map((value, j) => {
    const step = 1e-5 * (view.ends[1][j] - view.ends[0][j]), ends = [Math.max(value - step, view.ends[0][j]), Math.min(value + step, view.ends[1][j])];
    const [low, high] = ends.map((end) => explained(DATA.layer, x.map((v, i) => (i === j ? end : v)), output).value);
    return `${view.names[j]}: ${about((high - low) / (ends[1] - ends[0]))}`;
  });
  return ` T has the slopes ${own.join(", ")} here, about; every slope is within ${view.slope_text} of that of f, proved on the whole domain.`;
}

document.addEventListener("moved", (event) => { now = event.detail; update(); });
export function update() {
  if (!now || !view) return;
  const place = document.getElementById("box"), text = description(now) + slopesHere(now);
  if (place.textContent !== text) speak(place.textContent = text);
  view.drawn.forEach(mark);
  showWalk(now);
}

// The point on its way through the layer; its sliders are the page's.
function showWalk({ x, output }) {
  const hidden = !DATA.layer;
  document.getElementById("walk").hidden = document.getElementById("follow").hidden = hidden;
  if (hidden) return;
  const walk = Walk.mount(document.getElementById("walk-place"), DATA.layer, x, { output, onMove: goTo });
  if (output !== walk.output) walk.moveTo(x, output);
}

export const point = () => (now ? now.x : null);

// Mark the point and its box in a picture of the error.
function mark(drawn, number) {
  const place = document.getElementById(`error-${number}`);
  if (!place?.dataset.drawn || !place.layout) return;
  place.given ??= place.layout.shapes ?? [];
  const boxes = boxesAt(now.x) ?? [], side = (j) => {
    const box = boxes.find((b) => b.coordinates.includes(j));
    return box ? [box.lower[box.coordinates.indexOf(j)], box.upper[box.coordinates.indexOf(j)]] : [view.ends[0][j], view.ends[1][j]];
  };
  const line = { color: "#d55e00", width: 2 }, [x0, x1] = side(drawn[0]), [x, y] = drawn.map((j) => now.x[j]);
  const shapes = drawn.length === 1
    ? [{ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line }, { type: "rect", x0, x1, y0: 0, y1: 1, yref: "paper", line: { ...line, dash: "dot" } }]
    : [{ type: "rect", x0, x1, y0: side(drawn[1])[0], y1: side(drawn[1])[1], line: { ...line, dash: "dot" } },
      { type: "line", x0: x, x1: x, y0: view.ends[0][drawn[1]], y1: view.ends[1][drawn[1]], line: { ...line, width: 1 } },
      { type: "line", x0: view.ends[0][drawn[0]], x1: view.ends[1][drawn[0]], y0: y, y1: y, line: { ...line, width: 1 } }];
  Plotly.relayout(place, { shapes: [...place.given, ...shapes] });
}
