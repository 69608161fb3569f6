// The layer at a sequence of any length: weights of attention and answers. Needs layer.js.

"use strict";

// A sequence with its keys and values. Those of an earlier sequence are kept as far as both begin alike.
function prepared(layer, x, before = null) {
  const c = layer.config, tokens = embedded(layer, x, x.length), seen = seenByHeads(layer, tokens);
  let same = 0;
  while (before && same < x.length && x[same] === before.x[same]) same++;
  const projections = (name) => Array.from({ length: c.heads }, (_, h) =>
    seen.map((e, t) => (t < same ? before[name][h][t] : projected(layer, e, name, h))));
  return { x, tokens, seen, K: projections("K"), V: projections("V"), rows: new Map() };
}

// Whether token t is hidden from a row: a causal layer looks back; special tokens are seen by all and see all.
function isHidden(layer, at, row, t) {
  return layer.config.causal && row < at.x.length && t < at.x.length && t > row;
}

// What the layer computes at one row: weights of every head, and the answer there.
function rowOf(layer, at, row) {
  if (!at.rows.has(row)) at.rows.set(row, computedRow(layer, at, row));
  return at.rows.get(row);
}

function computedRow(layer, at, row) {
  const c = layer.config, m = c.d_model, root = Math.sqrt(c.d_k), stream = new Float64Array(m);
  const alpha = at.K.map((keys, h) => {
    const q = projected(layer, at.seen[row], "Q", h);
    const score = (key) => key.reduce((s, k, i) => s + k * q[i], 0) / root;
    const own = softmax(keys.map((key, t) => (isHidden(layer, at, row, t) ? -Infinity : score(key))));
    const z = new Float64Array(c.d_v);
    own.forEach((a, t) => { if (a > 0) for (let k = 0; k < c.d_v; k++) z[k] += a * at.V[h][t][k]; }); // Eq. (6), (7)
    const added = times(z, layer.weights.W_O.data, h * c.d_v * m, c.d_v, m); // Eq. (8)
    for (let k = 0; k < m; k++) stream[k] += added[k];
    return own;
  });
  return { alpha, out: readOut(layer, afterHeads(layer, at.tokens[row], stream).y) };
}

// The rows that answers are read from: all positions, or the output token.
function queriesOf(layer, at) {
  const c = layer.config;
  if (c.readout === "output") return [at.tokens.length - c.output_tokens];
  return layer.answer === "whole" && c.readout === "position" ? [0] : at.x.map((_, t) => t);
}

// T of the whole sequence; rows are averaged after the read-out, which is affine.
function wholeAnswer(layer, at) {
  const outs = queriesOf(layer, at).map((row) => rowOf(layer, at, row).out);
  return outs[0].map((_, o) => outs.reduce((s, out) => s + out[o], 0) / outs.length);
}

// The token, number or label that T stands for; null where T is real.
function answerOf(layer, out) {
  const decoding = layer.decoding;
  if (!decoding) return null;
  if (decoding.kind === "round") return Math.round(out[0]);
  if (decoding.kind === "zero") return out[0] < 0.5 ? 1 : 0;
  const best = out.indexOf(out.reduce((a, b) => Math.max(a, b)));
  return decoding.labels.length ? decoding.labels[best] : best;
}
