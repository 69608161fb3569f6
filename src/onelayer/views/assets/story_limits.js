// Step 7: what one layer cannot do. It cannot jump, nothing is known outside the box, and looking twice takes many heads.

"use strict";

function stepJump() {
  const host = byId("jump-plot"), plot = new Plot(host, { y: [-0.15, 1.15], height: 0.66, name: "A jump and a gate" });
  let b = 0.5;
  function draw() {
    const beta = 10 ** valueOf("jump-beta"), layer = gateLayer([[b]], beta, [1]), at = valueAt(layer, [0.5]);
    plot.begin();
    plot.line("target left", [0, 0.5], [0, 0]);
    plot.line("target right", [0.5, 1], [1, 1]);
    plot.line("layer", FINE, FINE.map((x) => valueAt(layer, [x])));
    plot.line("gap", [0.5, 0.5], at >= 0.5 ? [0, at] : [at, 1]);
    plot.end();
    const worst = Math.max(at, 1 - at);
    tell("jump-beta-shown", beta.toFixed(0));
    tell("jump-told", `At the jump T is ${at.toFixed(3)}. Just beside it f is 0 on the left and 1 on the right: T misses one of them by ${roundedDown(worst)}.`);
    NOW.jump = { b, beta, worst };
  }
  plot.handle("corner", {
    axis: "x", label: "b, where the gate switches", low: 0, high: 1, step: 0.02, get: () => b,
    set: (v) => { b = v; soon(); }, place: () => [b, 0.5],
  });
  const soon = live(host, draw, byId("jump-beta"));
}

function stepOutside() {
  const host = byId("outside-plot"), record = STORY.polished.find((r) => r.verdict === "CERTIFIED");
  const plot = new Plot(host, { y: [-4, 4], height: 0.66, name: "The layer outside the box" });
  function draw() {
    const far = valueOf("outside-far"), xs = range(401, -far, 1 + far), T = xs.map((x) => valueAt(record.layer, [x])), f = xs.map(storyTarget);
    plot.x = [-far, 1 + far];
    const size = 1.15 * Math.max(...T.map(Math.abs), 1.2);
    plot.y = [-size, size];
    plot.begin();
    plot.boxes("domain", [{ from: 0, to: 1, low: -size, high: size }]);
    plot.line("target", xs, f);
    plot.line("layer", xs, T);
    plot.end();
    const seen = Math.max(...T.map((v, k) => Math.abs(v - f[k])));
    tell("outside-far-shown", far.toFixed(1));
    tell("outside-told", `On the box: proved to be within ${roundedUp(record.bound)}. Over the range drawn, it is off by up to ${roundedDown(seen)} (seen at 401 points).`);
    NOW.outside = { far, seen, bound: record.bound };
  }
  live(host, draw, byId("outside-far"));
}

// The last letter asks: which letter followed its last earlier occurrence? The layer answers; the arcs show the two look-ups.
function stepTwice() {
  const layer = STORY.induction.layer, host = byId("twice-letters"), letters = [0, 1, 2, 0, 1, 0, 2, 0], none = layer.vocabulary;
  const arcs = element("svg", { viewBox: "0 0 8 2", preserveAspectRatio: "none", "aria-hidden": "true" }, byId("twice-arcs"));
  const paths = ["first", "second"].map((kind) => element("path", { class: `arc ${kind}` }, arcs));
  const arc = (from, to) => `M${from + 0.5} 2Q${(from + to + 1) / 2} ${to > from ? 0.6 : -1.6} ${to + 0.5} 2`;
  const name = (token) => (token === none ? "none" : "ABC"[token]);
  const buttons = letters.map((_, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.addEventListener("click", () => { letters[k] = (letters[k] + 1) % layer.vocabulary; draw(); });
    host.append(button);
    return button;
  });
  function draw() {
    const last = letters.length - 1, at = prepared(layer, letters), answer = answerOf(layer, rowOf(layer, at, last).out);
    const earlier = letters.lastIndexOf(letters[last], last - 1);
    buttons.forEach((button, k) => {
      button.textContent = name(letters[k]);
      button.className = k === last ? "asks" : k === earlier ? "first" : k === earlier + 1 && earlier >= 0 ? "second" : "";
      button.setAttribute("aria-label", `letter ${k + 1}: ${name(letters[k])}${k === last ? ", which asks" : ""}`);
    });
    paths[0].setAttribute("d", earlier < 0 ? "" : arc(last, earlier));
    paths[1].setAttribute("d", earlier < 0 || earlier + 1 === last ? "" : arc(earlier, earlier + 1));
    const where = earlier < 0 ? `${name(letters[last])} did not occur before` : `1. look for the last ${name(letters[last])}: place ${earlier + 1}; 2. look at what follows it: ${name(letters[earlier + 1])}`;
    tell("twice-told", `${where}. The layer answers “${name(answer)}”.`);
    NOW.twice = { letters: [...letters], answer };
  }
  draw();
}
