// The cards: every picture is computed from the weights of its layer when it comes near, and turns under the pointer.

"use strict";

const SIDE = 33, ANGLE = 0.6;

// T on a grid over two variables; the others stay at the middle of their sides.
function surfaceOf({ layer, drawn, ends: [low, high], output }) {
  const z = [], middle = low.map((a, j) => a + (high[j] - a) / 2);
  for (let j = 0; j < SIDE; j++) for (let i = 0; i < SIDE; i++) {
    const x = middle.slice();
    [i, j].forEach((step, axis) => { const v = drawn[axis]; x[v] = low[v] + ((high[v] - low[v]) * step) / (SIDE - 1); });
    z.push(explained(layer, x, output).value);
  }
  return z;
}

// The attention of the first head at every position of a sequence of tokens.
function sharesOf({ layer }) {
  const tokens = embedded(layer, layer.start);
  return layer.start.map((_, row) => Array.from(readAt(layer, tokens, row).alpha[0]));
}

function showPicture(canvas, record) {
  for (const name of Object.keys(record.layer.weights)) record.layer.weights[name] = decoded(record.layer.weights[name]);
  const numbers = record.layer.vocabulary === null ? surfaceOf(record) : null, rows = numbers ? null : sharesOf(record);
  const draw = (angle) => (numbers ? drawSurface(canvas, numbers, SIDE, angle) : drawShares(canvas, rows));
  canvas.addEventListener("pointermove", (event) => draw(ANGLE + (event.offsetX / canvas.clientWidth - 0.5) * 2));
  canvas.addEventListener("pointerleave", () => draw(ANGLE));
  new ResizeObserver(() => draw(ANGLE)).observe(canvas);
  draw(ANGLE);
  canvas.dataset.drawn = "yes";
}

followScheme(() => {});
const RECORDS = JSON.parse(document.getElementById("data").textContent);
const near = new IntersectionObserver((entries, own) => entries.filter((e) => e.isIntersecting).forEach(({ target }) => {
  own.unobserve(target);
  showPicture(target, RECORDS[target.id]);
}), { rootMargin: "300px" });
document.querySelectorAll("canvas").forEach((canvas) => near.observe(canvas));
document.body.dataset.ready = "yes";
