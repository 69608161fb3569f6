// The interactive parts of a page: figures, sliders of the slices, and the layer at one point. `show(data)` draws them.

"use strict";

let DATA = null; // what is shown
let THEME = null; // colours of a page with themes: {ink, line}
const BLUE = "#0072b2", VERMILION = "#d55e00", GREEN = "#009e73", GREY = "#8c8c8c";
const FONT = { family: "system-ui, sans-serif", size: 14 };
const LOOK = { responsive: true, displaylogo: false };

function draw(id, figure) {
  const place = document.getElementById(id);
  if (!place) return Promise.resolve();
  const layout = JSON.parse(JSON.stringify(figure.layout));
  const narrow = place.clientWidth < 560;
  if (place.clientWidth < 900) for (const scene of [layout.scene, layout.scene2]) if (scene) shrink(scene, narrow ? 1.4 : 1.2);
  if (narrow && layout.scene && layout.scene2) stack(figure, layout);
  if (narrow && layout.scene && layout.xaxis && layout.xaxis.domain && layout.xaxis.domain[1] < 0.6) placeBelow(figure, layout);
  const several = figure.data.filter((t) => t.name && t.showlegend !== false).length > 1, upright = layout.legend?.orientation !== "h";
  if (narrow && !layout.scene && several && layout.showlegend !== false && upright) placeLegendBelow(figure, layout);
  return Plotly.react(place, figure.data, themed(layout), LOOK); // quicker where one is drawn already
}

// All figures again in the colours of the page, as they are now: turned, zoomed, sliced.
function recolour() {
  const drawn = [...document.querySelectorAll(".js-plotly-plot")];
  return Promise.all(drawn.map((place) => Plotly.react(place, place.data, themed(JSON.parse(JSON.stringify(place.layout))), LOOK)));
}

// Free what a figure holds: a browser has few WebGL contexts.
function clear(figure) {
  const surfaces = [...figure.querySelectorAll("canvas")];
  Plotly.purge(figure);
  surfaces.forEach((canvas) => canvas.getContext("webgl")?.getExtension("WEBGL_lose_context")?.loseContext());
}

// The layout in the colours of the page.
function themed(layout) {
  if (!THEME) return layout;
  const own = { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { ...FONT, ...layout.font, color: THEME.ink } };
  const axis = (given) => ({ ...given, gridcolor: THEME.line, zerolinecolor: THEME.line, linecolor: THEME.line });
  for (const name of ["xaxis", "yaxis"]) own[name] = axis(own[name]);
  for (const name of Object.keys(own)) {
    if (/^[xy]axis\d+$/.test(name)) own[name] = axis(own[name]);
    if (!/^scene\d*$/.test(name)) continue;
    own[name] = { ...own[name] };
    for (const side of ["xaxis", "yaxis", "zaxis"]) own[name][side] = { ...axis(own[name][side]), color: THEME.ink, backgroundcolor: "rgba(0,0,0,0)" };
  }
  return own;
}

// In a narrow picture the axes and their names need more room.
function shrink(scene, further) {
  for (const axis of ["x", "y", "z"]) {
    scene.camera.eye[axis] *= further;
    const own = scene[`${axis}axis`];
    scene[`${axis}axis`] = { ...own, nticks: 4, tickfont: { size: 10 }, title: { ...own.title, font: { size: 12 } } };
  }
}

// On a phone, two surfaces go one above the other.
function stack(figure, layout) {
  layout.scene.domain = { x: [0, 1], y: [0.53, 0.96] };
  layout.scene2.domain = { x: [0, 1], y: [0, 0.43] };
  layout.margin = { ...layout.margin, l: 0, r: 0 };
  figure.data.filter((t) => t.showscale).forEach((t) => { t.colorbar = { ...t.colorbar, thickness: 10, len: 0.5 }; });
  (layout.annotations || []).forEach((note, i) => { note.x = 0.5; note.y = i === 0 ? 0.97 : 0.45; });
  layout.height = 2 * layout.height;
}

// On a phone, the surface goes below the map.
function placeBelow(figure, layout) {
  layout.xaxis.domain = [0, 0.88];
  layout.yaxis.domain = [0.56, 0.96];
  layout.scene.domain = { x: [0, 1], y: [0, 0.44] };
  (layout.annotations || []).forEach((note, i) => { note.x = 0.5; note.y = i === 0 ? 0.97 : 0.46; });
  figure.data.filter((t) => t.colorbar).forEach((t) => { t.colorbar = { ...t.colorbar, x: 0.9, y: 0.76, len: 0.42 }; });
  layout.height = 1.8 * layout.height;
}

// On a phone, a long legend goes below the picture.
function placeLegendBelow(figure, layout) {
  layout.legend = { ...layout.legend, orientation: "h", y: -0.25, x: 0, xanchor: "left", yanchor: "top" };
  layout.height += 24 * figure.data.length;
}

// -- slices ---------------------------------------------------------------------------------------------------------
// A scene's arrays are [stops…, axes…, outputs]; a slice fixes the stops and the output.

function slice(array, scene, stops, output) {
  const sides = scene.sides, m = array.shape[array.shape.length - 1];
  let start = 0;
  stops.forEach((s, i) => { start = start * scene.stops[i].length + s; });
  const count = sides.reduce((p, s) => p * s, 1), at = (k) => array.data[(start * count + k) * m + output];
  if (sides.length === 1) return Array.from({ length: count }, (_, k) => at(k));
  return Array.from({ length: sides[1] }, (_, j) => Array.from({ length: sides[0] }, (_, i) => at(i * sides[1] + j)));
}

function rangeOf(arrays, output) {
  let low = Infinity, high = -Infinity;
  for (const a of arrays) {
    const m = a.shape[a.shape.length - 1];
    for (let k = output; k < a.data.length; k += m) if (a.data[k] === a.data[k]) {
      low = Math.min(low, a.data[k]); high = Math.max(high, a.data[k]);
    }
  }
  const more = low < high ? 0.1 * (high - low) : 1; // labels keep away from the corners
  return [low - more, high + more];
}

function moveScene(number) {
  const scene = DATA.scenes[number], form = document.getElementById(`scene-${number}`);
  const stops = [...form.querySelectorAll("input[type=range]")].map((input) => Number(input.value));
  const select = form.querySelector("select"), output = select ? Number(select.value) : 0;
  stops.forEach((s, i) => { form.querySelectorAll("output")[i].value = String(scene.stops[i][s]); });
  const curve = scene.sides.length === 1, key = curve ? "y" : "z", parts = scene.f ? [scene.f, scene.T] : [scene.T];
  const there = (name) => document.getElementById(`${name}-${number}`)?.dataset.drawn;
  if (there("function")) {
    const shown = parts.map((array) => slice(array, scene, stops, output)), traces = shown.map((_, i) => i);
    if (curve) Plotly.restyle(`function-${number}`, { y: shown }, traces);
    else {
      const range = rangeOf(parts, output), axes = traces.map((i) => (i ? `scene${i + 1}` : "scene") + ".zaxis.range");
      const layout = Object.fromEntries(axes.map((name) => [name, range]));
      Plotly.update(`function-${number}`, { z: shown, cmin: range[0], cmax: range[1] }, layout, traces);
    }
  }
  if (scene.error && there("error")) {
    const error = slice(scene.error, scene, stops, output);
    Plotly.restyle(`error-${number}`, { [key]: curve ? [error] : [error, error] }, curve ? [0] : [0, 1]);
  }
}

// -- the layer at one point -----------------------------------------------------------------------------------------

function bars(id, names, values, title, colours, height) {
  const data = [{ type: "bar", orientation: "h", x: values, y: names, marker: { color: colours } }];
  const layout = {
    font: FONT, height, margin: { l: 120, r: 16, t: 8, b: 44 },
    xaxis: { title: { text: title } }, yaxis: { autorange: "reversed", type: "category", automargin: true },
  };
  Plotly.react(id, data, themed(layout), LOOK);
}

function terms(found) {
  const tokens = DATA.layer.tokens;
  if (found.byToken && tokens.length > 8) {
    return found.byToken.flatMap((own, h) => own.map((v, t) =>
      ({ name: (found.byToken.length > 1 ? `head ${h + 1}, ` : "") + tokens[t], value: v })));
  }
  return found.byHead.map((v, h) => ({ name: `${DATA.layer.kinds[h]} ${h + 1}`, value: v }));
}

function drawSum(found) {
  const all = terms(found).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const shown = all.slice(0, 14), others = all.slice(14);
  const names = shown.map((t) => t.name), values = shown.map((t) => t.value);
  if (others.length) {
    names.push(`${others.length.toLocaleString("en")} others`);
    values.push(others.reduce((s, t) => s + t.value, 0));
  }
  names.push("rest", "T(x)");
  values.push(found.rest, found.value);
  const measure = names.map((_, i) => (i === names.length - 1 ? "total" : "relative"));
  const data = [{
    type: "waterfall", orientation: "h", y: names, x: values, measure, connector: { line: { color: "#bbb" } },
    increasing: { marker: { color: VERMILION } }, decreasing: { marker: { color: BLUE } }, totals: { marker: { color: GREEN } },
    hovertemplate: "%{y}: %{delta:.6g}<br>sum so far %{x:.6g}<extra></extra>",
  }];
  const layout = {
    font: FONT, height: 120 + 24 * names.length, margin: { l: 120, r: 16, t: 8, b: 44 },
    xaxis: { title: { text: "running sum" } },
    yaxis: { autorange: "reversed", type: "category", automargin: true },
  };
  Plotly.react("sum", data, themed(layout), LOOK);
}

function drawAttention(found) {
  const tokens = DATA.layer.tokens, heads = found.alpha.map((_, h) => h);
  if (tokens.length > 24) {
    const all = heads.flatMap((h) => found.alpha[h].map((a, t) =>
      ({ name: (heads.length > 1 ? `head ${h + 1}, ` : "") + tokens[t], a })));
    const top = all.sort((p, q) => q.a - p.a).slice(0, 24);
    bars("attention", top.map((p) => p.name), top.map((p) => p.a), "attention weight: the 24 largest", BLUE, 640);
    return;
  }
  const size = (h) => (found.byHead ? Math.abs(found.byHead[h]) : h === undefined ? 0 : -h);
  const top = heads.sort((a, b) => size(b) - size(a)).slice(0, 40);
  const data = [{
    type: "heatmap", z: top.map((h) => found.alpha[h]), x: tokens, y: top.map((h) => `${DATA.layer.kinds[h]} ${h + 1}`),
    zmin: 0, zmax: 1, colorscale: "Viridis", colorbar: { thickness: 12 },
    hovertemplate: "%{y} → %{x}: %{z:.4g}<extra></extra>",
  }];
  const layout = {
    font: FONT, height: 130 + 22 * top.length, margin: { l: 90, r: 16, t: 8, b: 70 },
    xaxis: { type: "category", automargin: true }, yaxis: { type: "category", autorange: "reversed", automargin: true },
  };
  Plotly.react("attention", data, themed(layout), LOOK);
}

function currentPoint() {
  const x = DATA.layer.start.slice();
  document.querySelectorAll("#movable input[type=range]").forEach((input) => {
    const j = Number(input.dataset.variable);
    x[j] = Number(input.value);
  });
  return x;
}

// T(x) beside f(x), where f is a formula; the difference is what this page computes, nothing that is proved.
function valueAt(x, output, T) {
  const f = targetAt(DATA.layer.target, x, output), at = x.length <= 4 ? `At x = (${x.map((v) => Number(v.toPrecision(6))).join(", ")}): ` : "";
  return `${at}T(x) = ${T}${f === null ? "" : `, f(x) = ${f}, T(x) − f(x) = ${Number((T - f).toPrecision(3))}`}`.replace(/-/g, "−");
}

function movePoint() {
  const select = document.querySelector("#movable select"), output = select ? Number(select.value) : 0;
  const x = currentPoint(), found = explained(DATA.layer, x, output);
  document.querySelectorAll("#movable output").forEach((out) => { out.value = String(Number(x[Number(out.dataset.variable)].toPrecision(5))).replace("-", "−"); });
  document.getElementById("value").textContent = valueAt(x, output, found.value);
  if (found.byHead) drawSum(found);
  drawAttention(found);
  const width = Math.min(found.hidden.length, 60), names = [...Array(width).keys()].map((u) => `unit ${u + 1}`);
  if (document.getElementById("hidden")) bars("hidden", names, Array.from(found.hidden.slice(0, width)), "hidden units", BLUE, 110 + 20 * width);
  window.explainedNow = { x, value: found.value }; // for tests
  document.dispatchEvent(new CustomEvent("moved", { detail: { x, output, found } }));
}

// -- the whole page -----------------------------------------------------------------------------------------------------

const waiting = new Set();
function soon(name, work) {
  if (waiting.has(name)) return;
  waiting.add(name);
  const data = DATA;
  requestAnimationFrame(() => { waiting.delete(name); if (DATA === data) work(); });
}

function unpack(data) {
  data.scenes.forEach((scene) => {
    scene.T = decoded(scene.T);
    if (!scene.error) return;
    scene.error = decoded(scene.error);
    scene.f = scene.f ? decoded(scene.f) : { shape: scene.T.shape, data: scene.T.data.map((v, k) => v - scene.error.data[k]) };
  });
  const weights = data.layer ? data.layer.weights : {};
  for (const name of Object.keys(weights)) weights[name] = decoded(weights[name]);
}

function drawNow(id) {
  const place = document.getElementById(id), data = DATA;
  return draw(id, DATA.figures[id]).then(() => {
    if (DATA !== data) { clear(place); return; }
    place.dataset.drawn = "yes";
    const number = Number(id.split("-")[1]);
    if (document.getElementById(`scene-${number}`)?.dataset.moved) moveScene(number); // where its sliders are by now
    place.dispatchEvent(new CustomEvent("drawn", { bubbles: true }));
  });
}

// Draw what the reader has not come near yet, and see to it that surfaces are painted now: the page is about to be printed.
function drawRest() {
  if (!DATA) return;
  watcher?.disconnect();
  Object.keys(DATA.figures).filter((id) => !document.getElementById(id).dataset.drawn).forEach(drawNow);
  for (const { _fullLayout: full } of document.querySelectorAll(".js-plotly-plot")) {
    for (const name of Object.keys(full).filter((key) => /^scene\d*$/.test(key))) full[name]._scene?.glplot?.redraw();
  }
}

// Draw the first figure at once, then the point, and the others when they come near: the page opens quickly.
let watcher = null;
async function show(data) {
  if (watcher) watcher.disconnect();
  DATA = data;
  unpack(DATA);
  const [first, ...others] = Object.keys(DATA.figures);
  for (const id of Object.keys(DATA.figures)) document.getElementById(id).style.minHeight = `${DATA.figures[id].layout.height}px`;
  DATA.scenes.forEach((_, number) => {
    const form = document.getElementById(`scene-${number}`);
    form.addEventListener("input", () => { form.dataset.moved = "yes"; soon(number, () => moveScene(number)); });
  });
  if (first) await drawNow(first);
  if (DATA !== data) return; // something else is shown by now
  if (DATA.layer) {
    document.getElementById("movable").addEventListener("input", () => soon("point", movePoint));
    movePoint();
  }
  watcher = new IntersectionObserver((entries, own) => entries.filter((e) => e.isIntersecting).forEach(({ target }) => {
    own.unobserve(target);
    drawNow(target.id);
  }), { rootMargin: "600px" });
  others.forEach((id) => watcher.observe(document.getElementById(id)));
}
