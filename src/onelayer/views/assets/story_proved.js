// Steps 4 to 6: layers that were built and proved beforehand, with their bounds and the boxes of their proofs.

"use strict";

const STORY = JSON.parse(byId("data").textContent);
for (const record of [...STORY.solved, ...STORY.polished, STORY.induction]) {
  const weights = record.layer.weights;
  for (const name of Object.keys(weights)) weights[name] = decoded(weights[name]);
}
const TARGET = FINE.map(storyTarget);
const curveOf = (layer) => FINE.map((x) => valueAt(layer, [x]));
const errorsOf = (layer) => curveOf(layer).map((v, k) => v - TARGET[k]);
const FLOOR = 1e-7; // the logarithmic pictures begin here

// Staircases by their number of gates; each is looked for once.
const STAIRS = new Map();
function stairsOf(n) {
  if (!STAIRS.has(n)) STAIRS.set(n, bestStaircase(storyTarget, n, FINE));
  return STAIRS.get(n);
}

// What a size is said to be, with its verdict against the tolerance of the story.
function sayProved(step, record) {
  tell(`${step}-units`, record.units); tell(`${step}-parameters`, record.parameters);
  tell(`${step}-bound`, roundedUp(record.bound)); tell(`${step}-observed`, roundedDown(record.observed));
  const verdict = byId(`${step}-verdict`);
  const met = { CERTIFIED: "is met", REFUTED: "is not met", UNDECIDED: "is neither proved nor refuted" };
  tell(`${step}-met`, `ε = ${shortNumber(STORY.tolerance)} ${met[record.verdict]}.`);
  verdict.textContent = record.verdict;
  verdict.className = `verdict ${record.verdict}`;
}

// -- 4: solved values ----------------------------------------------------------------------------------------------------

function stepSolved() {
  const host = byId("solved-plot");
  const plot = new Plot(host, { y: [-0.75, 1.5], height: 0.42, name: "f, the solved layer, and a staircase with as many gates" });
  const errors = new Plot(byId("solved-errors"), { y: [FLOOR, 2], log: true, height: 0.3, yLabel: "distance to f, logarithmic", name: "Distances to f" });
  let at = 0.3;
  function draw() {
    const record = STORY.solved[valueOf("solved-size")], layer = record.layer, stairs = stairsOf(record.units);
    plot.begin();
    plot.line("stairs", FINE, curveOf(stairs.layer));
    plot.line("target", FINE, TARGET);
    plot.line("layer", FINE, curveOf(layer));
    plot.rug("gates", switches(layer).map((gate) => gate.at));
    plot.end();
    errors.begin();
    errors.line("stairs", FINE, errorsOf(stairs.layer).map((v) => Math.max(Math.abs(v), FLOOR)));
    errors.line("layer", FINE, errorsOf(layer).map((v) => Math.max(Math.abs(v), FLOOR)));
    errors.line("bound", [0, 1], [record.bound, record.bound]);
    errors.end();
    sayProved("solved", record);
    tell("solved-size-shown", record.units);
    tell("solved-stairs", roundedDown(stairs.seen));
    const T = valueAt(layer, [at]), f = storyTarget(at);
    tell("solved-told", `At x = ${at.toFixed(3)}: f = ${f.toFixed(6)}, T = ${T.toFixed(6)}, apart by ${roundedDown(Math.abs(T - f))}.`);
    NOW.solved = { units: record.units, bound: record.bound, stairs: stairs.seen, x: at, T };
  }
  plot.handle("point", {
    axis: "x", label: "x, where both are compared", low: 0, high: 1, step: 0.01, get: () => at,
    set: (v) => { at = v; soon(); }, place: () => [at, storyTarget(at)],
  });
  const soon = live(host, draw, byId("solved-size"));
}

// -- 5: polished ---------------------------------------------------------------------------------------------------------

function stepPolished() {
  const host = byId("polished-plot"), sizes = [2, 4, 8, 12, 16, 24];
  const plot = new Plot(host, { y: [-0.75, 1.5], height: 0.42, name: "f and the polished layer" });
  const chart = new Plot(byId("polished-chart"), { x: [0, 26], y: [FLOOR, 2], log: true, height: 0.38, xLabel: "heads", yLabel: "error", name: "Error against the number of heads" });
  function draw() {
    const record = STORY.polished[valueOf("polished-size")], layer = record.layer;
    plot.begin();
    plot.line("target", FINE, TARGET);
    plot.line("layer", FINE, curveOf(layer));
    plot.rug("gates", switches(layer).map((gate) => gate.at));
    plot.end();
    chart.begin();
    chart.line("bound", [0, 26], [STORY.tolerance, STORY.tolerance]);
    chart.note("tolerance", 26, STORY.tolerance * 1.25, `ε = ${shortNumber(STORY.tolerance)}`, "end");
    const rows = { stairs: sizes.map((n) => ({ x: n, y: stairsOf(n).seen })) };
    for (const method of ["solved", "polished"]) rows[method] = STORY[method].map((r) => ({ x: r.units, y: r.bound, own: r === record ? "chosen" : "" }));
    for (const [kind, points] of Object.entries(rows)) {
      chart.line(`${kind} thin`, points.map((p) => p.x), points.map((p) => p.y));
      chart.dots(kind, points);
    }
    chart.end();
    sayProved("polished", record);
    tell("polished-size-shown", record.units);
    tell("polished-theorem", STORY.theorem_units.toLocaleString("en"));
    NOW.polished = { units: record.units, bound: record.bound, gates: switches(layer) };
  }
  live(host, draw, byId("polished-size"));
}

// -- 6: the proof's boxes ------------------------------------------------------------------------------------------------

function stepBoxes() {
  const record = STORY.polished.find((r) => r.verdict === "CERTIFIED"), boxes = proofBoxes(record.covering), host = byId("boxes-plot");
  const tall = 1.9 * record.bound, head = 0, place = head * record.layer.config.d_v * record.layer.config.d_model;
  const plot = new Plot(host, { y: [-tall, tall], height: 0.68, left: 66, yLabel: "T − f", name: "T − f inside the boxes of the proof" });
  const stored = record.layer.weights.W_O.data, entry = stored.findIndex((v, k) => k >= place && v !== 0), own = stored[entry];
  const base = errorsOf(record.layer);
  stored[entry] = own + 1;
  const reach = Math.max(...errorsOf(record.layer).map((v, k) => Math.abs(v - base[k]))); // the network is affine in W^O here
  stored[entry] = own;
  let at = 0.55;
  function draw() {
    const change = (valueOf("boxes-break") * 2 * record.bound) / reach, changed = own + change, count = valueOf("boxes-samples");
    stored[entry] = changed;
    const errors = errorsOf(record.layer), points = range(count + 1).slice(1).map((x) => x - 0.5 / count);
    const errorAt = (x) => valueAt(record.layer, [x]) - storyTarget(x);
    const seen = Math.max(...points.map((x) => Math.abs(errorAt(x)))), here = boxes.findIndex((b) => b.from <= at && at <= b.to), value = errorAt(at);
    plot.begin();
    plot.boxes("proof", boxes.map((b, k) => ({ ...b, own: k === here ? "here" : "" })));
    plot.line("bound low", [0, 1], [-record.bound, -record.bound]);
    plot.line("bound high", [0, 1], [record.bound, record.bound]);
    plot.note("high", 1, record.bound * 1.08, `bound ${roundedUp(record.bound)}`, "end");
    plot.line("layer", FINE, errors);
    plot.line("dashed", [at, at], [-tall, value]);
    plot.dots("samples", points.map((x) => ({ x, y: errorAt(x) })));
    plot.end();
    stored[entry] = own;
    const box = boxes[here];
    tell("boxes-told", `x = ${at.toFixed(3)} lies in box ${here + 1} of ${boxes.length}, from ${box.from.toFixed(4)} to ${box.to.toFixed(4)}. `
      + `Proved there, at every point: ${roundedDown(box.low)} ≤ T − f ≤ ${roundedUp(box.high)}. Here it is ${shortNumber(value)}.`);
    tell("boxes-samples-shown", count);
    tell("boxes-seen", roundedDown(seen));
    tell("boxes-bound", roundedUp(record.bound));
    const verdict = byId("boxes-verdict"), broken = changed !== own;
    tell("boxes-tense", broken ? "the bound was" : "the bound is");
    verdict.textContent = broken ? "no certificate" : record.verdict;
    verdict.className = `verdict ${broken ? "UNDECIDED" : record.verdict}`;
    tell("boxes-weight", broken ? `One number of W^O was ${own.toPrecision(8)} and is now ${changed.toPrecision(8)}. The proof spoke of the old one.`
      : `The layer is as it was proved: ${record.units} heads, ${record.parameters} parameters.`);
    NOW.boxes = { errors, boxes, bound: record.bound, seen, here, broken, value };
  }
  plot.handle("point", {
    axis: "x", label: "x, whose box is shown", low: 0, high: 1, step: 0.01, get: () => at,
    set: (v) => { at = v; soon(); }, place: () => [at, -tall],
  });
  const soon = live(host, draw, byId("boxes-break"), byId("boxes-samples"));
  byId("boxes-mend").addEventListener("click", () => { byId("boxes-break").value = 0; soon(); });
}
