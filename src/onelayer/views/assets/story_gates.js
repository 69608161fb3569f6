// Steps 1 to 3: one gate, a staircase of gates, and the theorem's layer for a function that the reader draws.

"use strict";

const FINE = range(301);
const NOW = {}; // what every step shows, for tests

// -- 1: one gate ---------------------------------------------------------------------------------------------------------

function stepGate() {
  const host = byId("gate-plot"), state = { b: [0.45, 0.4], x: [0.62, 0.7], numbers: 1 };
  const one = new Plot(host, { y: [0, 1], height: 0.56, yLabel: "attention that the anchor gets", name: "The weight of the anchor over x" });
  const two = new Plot(host, { y: [0, 1], height: 0.66, xLabel: "x₁", yLabel: "x₂", name: "The weight of the anchor over two numbers" });
  const sharpness = () => 10 ** valueOf("gate-sharpness");
  const layer = () => gateLayer([state.b.slice(0, state.numbers)], sharpness(), [1]);
  const heat = document.createElement("canvas");
  heat.width = heat.height = 49;

  function drawOne() {
    const gate = layer();
    one.begin();
    one.line("dashed", [state.b[0], state.b[0]], [0, 1]);
    one.line("layer", FINE, FINE.map((x) => valueAt(gate, [x])));
    one.note("bold", state.b[0], 0.04, "  b");
    one.end();
  }

  function drawTwo() {
    const gate = layer(), side = heat.width, pen = heat.getContext("2d"), image = pen.createImageData(side, side);
    for (let j = 0; j < side; j++) for (let i = 0; i < side; i++) {
      const share = valueAt(gate, [(i + 0.5) / side, 1 - (j + 0.5) / side]);
      image.data.set([213, 94, 0, Math.round(255 * share)], 4 * (j * side + i));
    }
    pen.putImageData(image, 0, 0);
    two.begin();
    const place = { x: two.px(0), y: two.py(1), width: two.px(1) - two.px(0), height: two.py(0) - two.py(1), preserveAspectRatio: "none" };
    const picture = two.part("heat", "image");
    for (const [key, value] of Object.entries({ ...place, href: heat.toDataURL() })) picture.setAttribute(key, value);
    two.line("dashed b1", [state.b[0], state.b[0]], [0, 1]);
    two.line("dashed b2", [0, 1], [state.b[1], state.b[1]]);
    two.dots("point", [{ x: state.x[0], y: state.x[1], own: "chosen" }]);
    two.end();
  }

  function draw() {
    one.svg.style.display = state.numbers === 1 ? "" : "none";
    two.svg.style.display = state.numbers === 2 ? "" : "none";
    byId("gate-two").hidden = state.numbers === 1;
    if (state.numbers === 2) state.x = [valueOf("gate-x1"), valueOf("gate-x2")];
    (state.numbers === 1 ? drawOne : drawTwo)();
    const x = state.x.slice(0, state.numbers), weights = attentionAt(layer(), x, 0);
    const names = [...(state.numbers === 1 ? ["x"] : ["x₁", "x₂"]), "anchor"];
    byId("gate-weights").replaceChildren(...weights.map((share, t) => {
      const bar = document.createElement("div");
      bar.className = t === names.length - 1 ? "share anchor" : "share";
      bar.style.flexGrow = Math.max(share, 0.001);
      bar.textContent = share > 0.13 ? `${names[t]} ${(100 * share).toFixed(0)} %` : "";
      bar.title = `${names[t]}: ${(100 * share).toFixed(1)} %`;
      return bar;
    }));
    const spoken = weights.map((share, t) => `${names[t]} ${(100 * share).toFixed(1)} %`).join(", ");
    tell("gate-told", `At ${x.map((v, j) => `${names[j]} = ${v.toFixed(2)}`).join(", ")} the head attends to: ${spoken}.`);
    tell("gate-sharpness-shown", sharpness().toFixed(0));
    for (const name of ["x1", "x2"]) tell(`gate-${name}-shown`, valueOf(`gate-${name}`).toFixed(2));
    NOW.gate = { b: state.b.slice(0, state.numbers), x, sharpness: sharpness(), weights };
  }

  const moved = (list, j) => (v) => { list[j] = v; soon(); };
  const ends = { low: 0, high: 1, step: 0.02 };
  one.handle("corner", { axis: "x", label: "b, where the gate switches", ...ends, get: () => state.b[0], set: moved(state.b, 0), place: () => [state.b[0], 0.5] });
  one.handle("point", { axis: "x", label: "x, the number", ...ends, get: () => state.x[0], set: moved(state.x, 0), place: () => [state.x[0], valueAt(layer(), [state.x[0]])] });
  two.handle("corner", { axis: "x", label: "b for the first number", ...ends, get: () => state.b[0], set: moved(state.b, 0), place: () => [state.b[0], 0] });
  two.handle("corner", { axis: "y", label: "b for the second number", ...ends, get: () => state.b[1], set: moved(state.b, 1), place: () => [0, state.b[1]] });
  const soon = live(host, draw, byId("gate-sharpness"), byId("gate-x1"), byId("gate-x2"));
  choice("gate-numbers", (value) => { state.numbers = Number(value); soon(); });
}

// -- 2: many gates -------------------------------------------------------------------------------------------------------

function stepStairs() {
  const host = byId("stairs-plot"), heights = [0.3, 0.75, 0.95, 0.55, 0.2, 0.45], n = heights.length;
  const plot = new Plot(host, { y: [-0.05, 1.15], height: 0.6, yLabel: "T, the sum of the gates", name: "A staircase of six gates" });
  const bars = new Plot(byId("stairs-values"), { y: [-0.8, 0.8], height: 0.26, yLabel: "what each open gate adds", name: "The values of the gates" });
  function draw() {
    const sharpness = 10 ** valueOf("stairs-sharpness"), used = valueOf("stairs-used"), rows = differences(heights);
    const layer = staircase(heights, sharpness), some = staircase(heights, sharpness);
    for (let h = used; h < n; h++) some.weights.W_O.data[h * some.config.d_model] = 0;
    plot.begin();
    plot.boxes("steps", heights.map((y, k) => ({ from: k / n, to: (k + 1) / n, low: 0, high: y })));
    plot.line("layer", FINE, FINE.map((x) => valueAt(some, [x])));
    plot.end();
    bars.begin();
    bars.line("zero", [0, 1], [0, 0]);
    bars.boxes("values", rows.map((v, k) => ({ from: k / n, to: k / n + 0.035, low: 0, high: v, own: k < used ? "on" : "off" })));
    bars.end();
    tell("stairs-used-shown", used);
    tell("stairs-sharpness-shown", sharpness.toFixed(0));
    const shown = (v) => v.toFixed(2).replace("-", "−");
    tell("stairs-told", `Values: ${rows.map(shown).join(", ")}. Each is a height minus the one before it.`);
    NOW.stairs = { heights: [...heights], rows, sharpness, middle: valueAt(layer, [2.5 / n]) };
  }
  const soon = live(host, draw, byId("stairs-used"), byId("stairs-sharpness"));
  heights.forEach((_, k) => plot.handle("height", {
    axis: "y", label: `height of step ${k + 1}`, low: 0, high: 1, step: 0.05, get: () => heights[k],
    set: (v) => { heights[k] = v; soon(); }, place: () => [(k + 0.5) / n, heights[k]],
  }));
  soon();
}

// -- 3: sharper, finer ---------------------------------------------------------------------------------------------------

function stepFiner() {
  const host = byId("finer-plot"), heights = [0.25, 0.5, 0.85, 0.7, 0.35, 0.3, 0.6], points = range(201);
  const plot = new Plot(host, { y: [-0.25, 1.35], height: 0.76, name: "Your function, and the theorem's layer" });
  function draw() {
    const { f, L } = polyline(heights), n = valueOf("finer-n"), beta = 10 ** valueOf("finer-beta");
    const layer = staircase(middles(f, n), beta), bound = theoremBound(L, n, beta), target = points.map(f), T = points.map((x) => valueAt(layer, [x]));
    const seen = T.reduce((worst, v, k) => Math.max(worst, Math.abs(v - target[k])), 0), asked = 10 ** valueOf("finer-eps");
    plot.begin();
    plot.area("bound", points, target.map((v) => v - bound), target.map((v) => v + bound));
    plot.line("target", points, target);
    plot.line("layer", points, T);
    plot.end();
    tell("finer-eps-shown", roundedUp(asked)); tell("finer-n-shown", n); tell("finer-beta-shown", beta.toFixed(0));
    tell("finer-L", roundedUp(L)); tell("finer-bound", roundedUp(bound)); tell("finer-seen", roundedDown(seen));
    NOW.finer = { heights: [...heights], L, n, beta, bound, seen, asked };
  }
  function choose() {
    const { n, beta } = theoremSizes(polyline(heights).L, 10 ** valueOf("finer-eps"));
    byId("finer-n").value = Math.min(n, Number(byId("finer-n").max));
    byId("finer-beta").value = Math.ceil(1000 * Math.log10(beta)) / 1000;
    soon();
  }
  let soon = () => {};
  byId("finer-eps").addEventListener("input", choose);
  heights.forEach((_, k) => plot.handle("knot", {
    axis: "y", label: `f at ${(k / (heights.length - 1)).toFixed(2)}`, low: 0, high: 1.1, step: 0.05, get: () => heights[k],
    set: (v) => { heights[k] = v; soon(); }, place: () => [k / (heights.length - 1), heights[k]],
  }));
  soon = live(host, draw, byId("finer-n"), byId("finer-beta"));
  choose();
}
