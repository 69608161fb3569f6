// A clicked point: the sliders go there, the layer is explained there, and the boxes of the proof that hold it are shown.

let covering = null; // {patches: [{coordinates, lower, upper, low, high}], extra}, or null
let whole = null; // what is proved on the whole domain
let view = null;
const UP = 1 + 1e-9;

export function look(found) { view = found; whole = found.bound; covering = undefined; }
// JSON has no ∞: null stands for what is not proved.
export function cover(found) {
  covering = found;
  if (!found) return;
  found.extra = found.extra.map((v) => v ?? Infinity);
  for (const patch of found.patches) {
    patch.high = patch.high.map((row) => row.map((v) => v ?? Infinity));
    patch.low = patch.low.map((row) => row.map((v) => v ?? -Infinity));
  }
}

// The point where the sliders stand, moved along some variables.
export function goTo(values) {
  for (const input of document.querySelectorAll("#movable input[type=range]")) {
    const value = values[Number(input.dataset.variable)];
    if (value !== undefined && Number.isFinite(value)) input.value = value;
  }
  movePoint();
}

export function clickable(place, number) {
  place.on("plotly_click", ({ points: [p] }) => {
    const drawn = view.drawn[number] ?? view.drawn[0], values = {};
    values[drawn[0]] = Number(p.x);
    if (drawn.length > 1) values[drawn[1]] = Number(p.y);
    const sliders = document.querySelectorAll(`#scene-${number} input[type=range]`), scene = DATA.scenes[number];
    const moved = view.names.map((_, j) => j).filter((j) => !drawn.includes(j)).slice(0, sliders.length);
    moved.forEach((j, i) => { values[j] = scene.stops[i][Number(sliders[i].value)]; });
    goTo(values);
    document.getElementById("point").scrollIntoView({ block: "start" });
  });
}

// One box of every patch that holds x: the one with the best bound.
export function boxesAt(x) {
  if (!covering) return null;
  const found = covering.patches.map((patch) => {
    let best = null;
    patch.lower.forEach((lower, b) => {
      const inside = patch.coordinates.every((j, i) => lower[i] <= x[j] && x[j] <= patch.upper[b][i]);
      const size = Math.max(...patch.high[b].map((h, o) => Math.max(h, -patch.low[b][o])));
      if (inside && (!best || size < best.size)) best = { size, b };
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
  return whole === null ? bound : Math.min(bound, whole);
}

const upward = (v) => { const e = 10 ** (Math.floor(Math.log10(v)) - 2); return (Math.ceil((v / e) * UP) * e).toPrecision(3); };
const side = (name, low, high) => `${name} from ${Number(low.toPrecision(6))} to ${Number(high.toPrecision(6))}`;

function told({ x, output, found }) {
  const value = found.value, band = (b) => `so f(x) is between ${(value - b).toPrecision(7)} and ${(value + b).toPrecision(7)}`;
  if (whole === null) return "Nothing is proved about this layer.";
  const boxes = boxesAt(x);
  if (!boxes) {
    const waiting = covering === undefined ? " The boxes of the proof are being looked up." : "";
    return `Proved on the whole domain: |T − f| ≤ ${upward(whole)}; ${band(whole)}.${waiting}`;
  }
  const bound = boundOn(boxes, output), names = view.names;
  const where = boxes.map((box) => box.coordinates.map((j, i) => side(names[j], box.lower[i], box.upper[i])).join(", ")).join("; ");
  return `The proof's box here: ${where}. In it |T − f| ≤ ${upward(bound)} is proved (${upward(whole)} on the whole domain); ${band(bound)}.`;
}

let now = null;
document.addEventListener("moved", (event) => { now = event.detail; tell(); });
export function tell() {
  if (!now || !view) return;
  document.getElementById("box").textContent = told(now);
  mark();
}

export const point = () => (now ? now.x : null);

// The point, and its box, in the picture of the error.
function mark() {
  const place = document.getElementById("error-0");
  if (!place?.dataset.drawn) return;
  place.given ??= place.layout.shapes ?? [];
  const drawn = view.drawn[0], boxes = boxesAt(now.x) ?? [], side = (j) => {
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
