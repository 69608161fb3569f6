// The mathematics of the story: layers of gates as the theorem writes them, ready for layer.js, and what is known about them.

"use strict";

const FAR = 800; // exp(-800) is 0 in double precision

// The function of the last steps; story.json has it as a formula.
const storyTarget = (x) => Math.sin(10 * x * x) / 2 + Math.exp(-((14 * x - 4.2) ** 2));

function weight(shape, entries = {}) {
  const data = new Float64Array(shape.reduce((a, b) => a * b, 1));
  for (const [at, value] of Object.entries(entries)) data[at] = value;
  return { shape, data };
}

// Section 1 of the theorem on [0, 1]^D: a gate with offset b for every corner b, and its row of W^O. An offset of -Infinity
// leaves that coordinate out. Coordinates of a token: x; its position's code; the anchor's flag. The anchor is read.
function gateLayer(corners, sharpness, rows) {
  const D = corners[0].length, H = corners.length, m = D + 2, keys = {}, queries = {}, values = {}, out = {};
  corners.forEach((corner, h) => {
    keys[h * m] = -sharpness;
    corner.forEach((b, j) => {
      keys[h * m + 1 + j] = b === -Infinity ? -FAR - sharpness / 2 : sharpness * (b - 0.5);
      queries[h * m + 1 + j] = 1;
    });
    queries[h * m + m - 1] = 1;
    values[h * m + m - 1] = 1;
    out[h * m] = rows[h];
  });
  const codes = Object.fromEntries([...Array(D).keys()].map((j) => [j * m + 1 + j, 1]));
  const every = (value) => Object.fromEntries([...Array(D).keys()].map((j) => [j, value]));
  return {
    config: {
      tokens: D, features_in: 1, features_out: 1, d_model: m, heads: H, d_k: 1, d_v: 1, ffn_width: 2,
      readout: "output", output_tokens: 1, residual: false, norm: "none", activation: "relu",
    },
    places: [0],
    weights: {
      shift: weight([D, 1], every(0.5)), scale: weight([D, 1], every(1)), W_E: weight([1, m], { 0: 1 }), b_E: weight([m]),
      P: weight([D, m], codes), S: weight([1, m], { [m - 1]: 1 }),
      W_Q: weight([H, m, 1], queries), W_K: weight([H, m, 1], keys), W_V: weight([H, m, 1], values), W_O: weight([H, m], out),
      W_1: weight([m, 2], { 0: 1, 1: -1 }), b_1: weight([2]), W_2: weight([2, m], { 0: 1, [m]: -1 }), b_2: weight([m]),
      W_R: weight([m, 1], { 0: 1 }), b_R: weight([1]),
    },
  };
}

// Section 2 in one variable: cells of equal width with these heights; the first gate is always open.
function staircase(heights, sharpness) {
  const n = heights.length, corners = heights.map((_, k) => [k ? k / n : -Infinity]);
  return gateLayer(corners, sharpness, differences(heights));
}

const differences = (heights) => heights.map((y, k) => y - (k ? heights[k - 1] : 0));
const middles = (f, n) => [...Array(n).keys()].map((k) => f((k + 0.5) / n));

function readRow(layer, tokens) {
  const start = layer.config.readout === "output" ? tokens.length - layer.config.output_tokens : 0;
  return start + layer.places[0];
}

// T(x), by the layer's own softmax.
function valueAt(layer, x) {
  const tokens = embedded(layer, x);
  return readOut(layer, readAt(layer, tokens, readRow(layer, tokens)).y)[0];
}

// The attention weights of one head where the layer is read: the numbers first, the anchor last.
function attentionAt(layer, x, head) {
  const tokens = embedded(layer, x);
  return Array.from(readAt(layer, tokens, readRow(layer, tokens)).alpha[head]);
}

// Where every gate of a layer of one variable switches, and how sharply: there the number and the anchor have equal scores.
function switches(layer) {
  const gap = (head, x) => {
    const tokens = embedded(layer, [x]), q = projected(layer, tokens[readRow(layer, tokens)], "Q", head);
    const scores = tokens.map((e) => projected(layer, e, "K", head).reduce((s, k, i) => s + k * q[i], 0));
    return (scores[0] - scores[tokens.length - 1]) / Math.sqrt(layer.config.d_k);
  };
  return [...Array(layer.config.heads).keys()].map((head) => {
    const left = gap(head, 0), right = gap(head, 1);
    return { at: left / (left - right), sharpness: left - right };
  });
}

// Section 3, one variable on [0, 1] with Lipschitz constant L: what n cells and sharpness β are proved to reach, in exact arithmetic.
const theoremBound = (L, n, beta) => L * (1 / (2 * n) + (2 * Math.LN2) / beta);

// n and β for a tolerance: half of it for the cells, half for the gates.
function theoremSizes(L, tolerance) {
  return { n: Math.max(1, Math.ceil(L / tolerance)), beta: Math.max(1, (4 * Math.LN2 * L) / tolerance) };
}

// A function through equally spaced points on [0, 1], straight between them; its steepest slope is its L.
function polyline(heights) {
  const n = heights.length - 1;
  const f = (x) => {
    const k = Math.min(Math.floor(Math.max(x, 0) * n), n - 1), t = x * n - k;
    return heights[k] * (1 - t) + heights[k + 1] * t;
  };
  return { f, L: Math.max(...heights.slice(1).map((y, k) => Math.abs(y - heights[k]) * n)) };
}

function largestError(layer, f, points) {
  return points.reduce((worst, x) => Math.max(worst, Math.abs(valueAt(layer, [x]) - f(x))), 0);
}

// The staircase of n gates for f that came closest at these points, out of a few sharpnesses.
function bestStaircase(f, n, points) {
  const tried = [4, 8, 16, 32].map((k) => staircase(middles(f, n), k * n));
  return tried.map((layer) => ({ layer, seen: largestError(layer, f, points) })).reduce((a, b) => (b.seen < a.seen ? b : a));
}

// The box of a proof that contains x: {from, to, low, high}, rounding included.
function proofBoxes(covering) {
  const patch = covering.patches[0], extra = covering.extra[0];
  return patch.lower.map(([from], k) => ({ from, to: patch.upper[k][0], low: patch.low[k][0] - extra, high: patch.high[k][0] + extra }))
    .sort((a, b) => a.from - b.from);
}

// Three digits: never below a bound, never above what was seen.
const roundedUp = (v) => rounded(v, 1);
const roundedDown = (v) => rounded(v, -1);

function rounded(v, direction) {
  if (!Number.isFinite(v) || v === 0) return String(v);
  const unit = Math.floor(Math.log10(Math.abs(v))) - 2, shown = (digits) => Number(`${digits}e${unit}`);
  let digits = Math.round(unit < 0 ? v * 10 ** -unit : v / 10 ** unit);
  while (direction * (shown(digits) - v) < 0) digits += direction;
  return shortNumber(shown(digits));
}

// A number as a reader writes it: 0.25, −2·10⁻⁵.
function shortNumber(v) {
  if (v === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(v)) + 1e-9);
  if (power >= -3 && power < 5) return String(Number(v.toPrecision(4))).replace("-", "−");
  const factor = Number((v / 10 ** power).toPrecision(3)), raised = [...String(power)].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("");
  return `${factor === 1 ? "" : factor === -1 ? "−" : `${factor}·`}10${raised}`.replace("-", "−");
}
