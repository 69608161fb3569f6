// One self-attention layer with its feed-forward network, Eq. (5)-(8), at one point: the ordinary softmax, in double precision.
// `layer` holds the configuration, the weights as {shape, data} and the places that are read out. Vectors are rows.

"use strict";

function decoded(record) {
  const bytes = Uint8Array.from(atob(record.base64), (c) => c.charCodeAt(0));
  const kind = record.dtype === "float32" ? Float32Array : Float64Array;
  return { shape: record.shape, data: new kind(bytes.buffer) };
}

function erf(x) {
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  if (a < 2.5) {
    let term = a, sum = a;
    for (let k = 1; k < 80; k++) { term *= (-a * a) / k; sum += term / (2 * k + 1); }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let k = 60; k > 0; k--) fraction = (k / 2) / (a + fraction);
  return Math.sign(x) * (1 - Math.exp(-a * a) / ((a + fraction) * Math.sqrt(Math.PI)));
}

const ACTIVATION = {
  relu: (v) => Math.max(v, 0),
  gelu: (v) => (v / 2) * (1 + erf(v / Math.SQRT2)),
  silu: (v) => v / (1 + Math.exp(-v)),
};

function times(row, M, offset, inner, outer) {
  const out = new Float64Array(outer);
  for (let i = 0; i < inner; i++) {
    const r = row[i];
    if (r === 0) continue;
    for (let j = 0; j < outer; j++) out[j] += r * M[offset + i * outer + j];
  }
  return out;
}

function normalised(row, gain, offset, eps) {
  const mean = row.reduce((s, v) => s + v, 0) / row.length;
  const variance = row.reduce((s, v) => s + (v - mean) ** 2, 0) / row.length;
  return row.map((v, i) => ((v - mean) / Math.sqrt(variance + eps)) * gain[i] + offset[i]);
}

// The first n tokens of a sequence, then the special ones.
function embedded(layer, x, n = layer.config.tokens) {
  const c = layer.config, w = layer.weights, tokens = [];
  for (let t = 0; t < n; t++) {
    const features = new Float64Array(c.features_in);
    for (let i = 0; i < c.features_in; i++) {
      const given = layer.vocabulary ? (x[t] === i ? 1 : 0) : x[t * c.features_in + i];
      const at = t * c.features_in + i;
      features[i] = (given - w.shift.data[at]) * w.scale.data[at];
    }
    const e = times(features, w.W_E.data, 0, c.features_in, c.d_model);
    for (let m = 0; m < c.d_model; m++) e[m] += w.b_E.data[m] + (w.P ? w.P.data[t * c.d_model + m] : 0);
    tokens.push(e);
  }
  const special = w.S ? w.S.shape[0] : 0;
  for (let s = 0; s < special; s++) tokens.push(Float64Array.from(w.S.data.slice(s * c.d_model, (s + 1) * c.d_model)));
  return tokens;
}

// The query, key or value ("Q", "K", "V") of one token in one head.
function projected(layer, token, name, head) {
  const c = layer.config, w = layer.weights, m = c.d_model, width = name === "V" ? c.d_v : c.d_k;
  const out = times(token, w["W_" + name].data, head * m * width, m, width);
  if (w.b_Q) for (let k = 0; k < width; k++) out[k] += w["b_" + name].data[head * width + k];
  return out;
}

// Eq. (5): the weights of some scores; −Infinity is hidden.
function softmax(scores) {
  const top = scores.reduce((a, b) => Math.max(a, b)), powers = scores.map((s) => Math.exp(s - top));
  const total = powers.reduce((s, v) => s + v, 0);
  return powers.map((p) => p / total);
}

// Tokens as the heads see them.
function seenByHeads(layer, tokens) {
  const c = layer.config, w = layer.weights;
  return c.norm === "pre" ? tokens.map((e) => normalised(e, w.gain_1.data, w.offset_1.data, c.norm_eps)) : tokens;
}

// The rest of the layer at one token, from what all heads add to it: the stream h, hidden units, what the network adds, output y.
function afterHeads(layer, token, added) {
  const c = layer.config, w = layer.weights, m = c.d_model, pre = c.norm === "pre", post = c.norm === "post";
  const stream = w.b_O ? added.map((s, k) => s + w.b_O.data[k]) : added;
  let h = c.residual ? stream.map((s, k) => s + token[k]) : stream;
  if (post) h = normalised(h, w.gain_1.data, w.offset_1.data, c.norm_eps);
  const into = pre ? normalised(h, w.gain_2.data, w.offset_2.data, c.norm_eps) : h;
  const before = times(into, w.W_1.data, 0, m, c.ffn_width).map((u, k) => u + w.b_1.data[k]);
  const hidden = before.map(ACTIVATION[c.activation]);
  const f = times(hidden, w.W_2.data, 0, c.ffn_width, m).map((u, k) => u + w.b_2.data[k]);
  let y = c.residual ? f.map((u, k) => u + h[k]) : f;
  if (post) y = normalised(y, w.gain_2.data, w.offset_2.data, c.norm_eps);
  return { h, into, before, hidden, fed: f, y };
}

// What the layer computes at one row: queries, keys, scores, weights, values and contributions of every head, hidden units, y.
function readAt(layer, tokens, row) {
  const c = layer.config, w = layer.weights, m = c.d_model, seen = seenByHeads(layer, tokens);
  const root = Math.sqrt(c.d_k), heads = [], stream = new Float64Array(m);
  for (let h = 0; h < c.heads; h++) {
    const q = projected(layer, seen[row], "Q", h), v = seen.map((e) => projected(layer, e, "V", h));
    const k = seen.map((e) => projected(layer, e, "K", h)), scores = k.map((own) => own.reduce((s, u, i) => s + u * q[i], 0) / root);
    const alpha = softmax(scores), z = new Float64Array(c.d_v);
    for (let t = 0; t < tokens.length; t++) for (let i = 0; i < c.d_v; i++) z[i] += alpha[t] * v[t][i]; // Eq. (6), (7)
    const added = times(z, w.W_O.data, h * c.d_v * m, c.d_v, m); // Eq. (8)
    for (let i = 0; i < m; i++) stream[i] += added[i];
    heads.push({ q, k, scores, alpha, v, z, added });
  }
  return { seen, heads, alpha: heads.map((own) => own.alpha), ...afterHeads(layer, tokens[row], stream) };
}

function readOut(layer, y) {
  const c = layer.config, w = layer.weights;
  return times(y, w.W_R.data, 0, c.d_model, c.features_out).map((v, o) => v + w.b_R.data[o]);
}

// The gradient of an output in the stream after the heads: for fixed active units the network is affine.
function slopeOf(layer, before, output) {
  const c = layer.config, w = layer.weights, J = new Float64Array(c.d_model);
  for (let m = 0; m < c.d_model; m++) J[m] = c.residual ? w.W_R.data[m * c.features_out + output] : 0;
  for (let u = 0; u < c.ffn_width; u++) {
    if (!(before[u] > 0)) continue;
    let out = 0;
    for (let m = 0; m < c.d_model; m++) out += w.W_2.data[u * c.d_model + m] * w.W_R.data[m * c.features_out + output];
    for (let m = 0; m < c.d_model; m++) J[m] += w.W_1.data[m * c.ffn_width + u] * out;
  }
  return J;
}

// Everything on the way from x to one output: tokens, the heads at the rows that are read out, outputs, T(x). Several rows are averaged.
function traced(layer, x, output) {
  const c = layer.config, place = layer.places[Math.floor(output / c.features_out)], entry = output % c.features_out;
  const tokens = embedded(layer, x), mean = c.readout === "mean";
  const start = c.readout === "output" ? tokens.length - c.output_tokens : 0;
  const rows = mean ? [...Array(c.tokens).keys()] : [start + place];
  const read = rows.map((row) => readAt(layer, tokens, row));
  const outs = read.map((r) => readOut(layer, r.y)[entry]);
  const value = outs.reduce((s, v) => s + v, 0) / outs.length;
  const linear = c.activation === "relu" && c.norm === "none" && !mean;
  const J = linear ? slopeOf(layer, read[0].before, entry) : null;
  const byHead = J && read[0].heads.map(({ added }) => added.reduce((s, v, k) => s + v * J[k], 0));
  return { tokens, rows, read, outs, value, entry, J, byHead };
}

// T(x) at one output of the approximation, and why: {value, alpha, byHead, byToken, rest, hidden}.
function explained(layer, x, output) {
  const c = layer.config, { read: [first], value, J, byHead } = traced(layer, x, output), { alpha, hidden } = first;
  if (!J) return { value, alpha, hidden, byHead: null, byToken: null, rest: 0 };
  const byToken = c.heads > 8 ? null : first.heads.map(({ alpha: own, v }, h) => v.map((value, t) => {
    const row = times(value, layer.weights.W_O.data, h * c.d_v * c.d_model, c.d_v, c.d_model);
    return own[t] * row.reduce((s, u, k) => s + u * J[k], 0);
  }));
  return { value, alpha, hidden, byHead, byToken, rest: value - byHead.reduce((s, v) => s + v, 0) };
}
