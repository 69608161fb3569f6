// Small pictures in SVG: axes, curves, and points that are dragged with the pointer or moved with the arrow keys.

"use strict";

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const range = (n, from = 0, to = 1) => [...Array(n).keys()].map((k) => from + ((to - from) * k) / (n - 1));
const within = (v, low, high) => Math.min(Math.max(v, low), high);

function element(name, attributes = {}, parent = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

// A picture with axes. `x` and `y` are [low, high]; `log`: y is on a logarithmic scale; `height` is a share of the width.
class Plot {
  constructor(host, { x = [0, 1], y, log = false, height = 0.55, left = 52, xLabel = "x", yLabel = "", name }) {
    Object.assign(this, { host, x, y, log, height, room: left, xLabel, yLabel, parts: new Map(), handles: [] });
    this.svg = element("svg", { role: "group", "aria-label": name }, host);
    this.axes = element("g", { class: "axes", "aria-hidden": "true" }, this.svg);
    this.marks = element("g", { "aria-hidden": "true" }, this.svg);
    this.front = element("g", {}, this.svg);
  }

  // Fit the width of the page; to be called before anything is drawn.
  begin() {
    this.width = Math.max(this.host.clientWidth, 240);
    const tallest = Math.max(innerHeight * 0.62, 220);
    this.tall = Math.round(within(this.width * this.height, Math.min(190, tallest), tallest));
    const big = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // on a projector
    this.left = this.room * big; this.right = 14; this.top = (this.yLabel ? 26 : 14) * big; this.bottom = 34 * big;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.tall}`);
    this.svg.setAttribute("height", this.tall);
    this.drawAxes();
  }

  px(x) { return this.left + ((x - this.x[0]) / (this.x[1] - this.x[0])) * (this.width - this.left - this.right); }
  share(y) {
    const scale = this.log ? (v) => Math.log10(Math.max(v, 1e-300)) : (v) => v;
    return (scale(y) - scale(this.y[0])) / (scale(this.y[1]) - scale(this.y[0]));
  }
  py(y) { return this.tall - this.bottom - within(this.share(y), -0.02, 1.02) * (this.tall - this.top - this.bottom); }
  xAt(px) { return this.x[0] + ((px - this.left) / (this.width - this.left - this.right)) * (this.x[1] - this.x[0]); }
  yAt(py) { return this.y[0] + ((this.tall - this.bottom - py) / (this.tall - this.top - this.bottom)) * (this.y[1] - this.y[0]); }

  drawAxes() {
    this.axes.replaceChildren();
    const right = this.width - this.right, low = this.tall - this.bottom;
    const label = (text, at) => { element("text", at, this.axes).textContent = text; };
    for (const t of ticks(this.x[0], this.x[1], this.width < 420 ? 4 : 6)) {
      element("line", { x1: this.px(t), x2: this.px(t), y1: low, y2: low + 4 }, this.axes);
      label(shortNumber(t), { x: this.px(t), y: low + this.bottom / 2, "text-anchor": "middle" });
    }
    for (const t of this.log ? powers(this.y[0], this.y[1]) : ticks(this.y[0], this.y[1], 5)) {
      element("line", { class: "grid", x1: this.left, x2: right, y1: this.py(t), y2: this.py(t) }, this.axes);
      label(shortNumber(t), { x: this.left - 6, y: this.py(t) + 4, "text-anchor": "end" });
    }
    element("line", { x1: this.left, x2: right, y1: low, y2: low }, this.axes);
    label(this.xLabel, { x: right, y: this.tall - 4, "text-anchor": "end", class: "name" });
    if (this.yLabel) label(this.yLabel, { x: this.left, y: this.top * 0.55, class: "name" });
  }

  part(name, kind, attributes = {}) {
    if (!this.parts.has(name)) this.parts.set(name, element(kind, { class: name, ...attributes }, this.marks));
    return this.parts.get(name);
  }

  // A curve; `kind` is its class.
  line(kind, xs, ys) {
    const path = xs.map((x, k) => `${k ? "L" : "M"}${this.px(x).toFixed(1)} ${this.py(ys[k]).toFixed(1)}`).join("");
    this.part(`line ${kind}`, "path").setAttribute("d", path);
  }

  // What lies between two curves.
  area(kind, xs, lows, highs) {
    const point = (x, y) => `${this.px(x).toFixed(1)} ${this.py(y).toFixed(1)}`;
    const up = xs.map((x, k) => point(x, highs[k])), down = xs.map((x, k) => point(x, lows[k])).reverse();
    this.part(`area ${kind}`, "path").setAttribute("d", `M${[...up, ...down].join("L")}Z`);
  }

  // Rectangles {from, to, low, high}, with a class of their own if they have one.
  boxes(kind, list) {
    const group = this.part(`boxes ${kind}`, "g");
    group.replaceChildren();
    for (const { from, to, low, high, own = "" } of list) {
      const top = this.py(Math.max(low, high)), height = Math.max(this.py(Math.min(low, high)) - top, 1);
      element("rect", { x: this.px(from), width: Math.max(this.px(to) - this.px(from), 1), y: top, height, class: own }, group);
    }
  }

  // Short vertical lines at the bottom or the top, where gates switch.
  rug(kind, places, above = false) {
    const group = this.part(`rug ${kind}`, "g"), base = above ? this.top : this.tall - this.bottom;
    group.replaceChildren();
    for (const x of places.filter((v) => v >= this.x[0] && v <= this.x[1])) {
      element("line", { x1: this.px(x), x2: this.px(x), y1: base, y2: base + (above ? 14 : -14) }, group);
    }
  }

  dots(kind, points) {
    const group = this.part(`dots ${kind}`, "g");
    group.replaceChildren();
    for (const { x, y, own = "" } of points) element("circle", { cx: this.px(x), cy: this.py(y), r: own ? 7 : 4, class: own }, group);
  }

  note(kind, x, y, text, anchor = "start") {
    const made = this.part(`note ${kind}`, "text");
    made.setAttribute("x", this.px(x)); made.setAttribute("y", this.py(y)); made.setAttribute("text-anchor", anchor);
    made.textContent = text;
  }

  // A point to drag along "x" or "y". `get` and `set` are its number, `place` where it is drawn, `say` what is read out.
  handle(kind, { axis, label, low, high, step, get, set, place, say = String }) {
    const knob = element("circle", {
      class: `handle ${kind} ${axis}`, r: 10, tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": low, "aria-valuemax": high,
      "aria-orientation": axis === "x" ? "horizontal" : "vertical",
    }, this.front);
    const put = (value) => set(within(value, low, high));
    const from = (event) => {
      const frame = this.svg.getBoundingClientRect(), scale = this.width / frame.width;
      put(axis === "x" ? this.xAt((event.clientX - frame.left) * scale) : this.yAt((event.clientY - frame.top) * scale));
    };
    knob.addEventListener("pointerdown", (event) => { knob.setPointerCapture(event.pointerId); knob.focus(); event.preventDefault(); });
    knob.addEventListener("pointermove", (event) => { if (knob.hasPointerCapture(event.pointerId)) from(event); });
    knob.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step, PageUp: 5 * step, PageDown: -5 * step };
      if (event.key === "Home") put(low);
      else if (event.key === "End") put(high);
      else if (event.key in moves) put(get() + moves[event.key]);
      else return;
      event.preventDefault();
    });
    this.handles.push(() => {
      const [x, y] = place();
      knob.setAttribute("cx", this.px(x)); knob.setAttribute("cy", this.py(y));
      knob.setAttribute("aria-valuenow", Number(get().toFixed(4))); knob.setAttribute("aria-valuetext", say(Number(get().toFixed(3))));
    });
    return knob;
  }

  // Put the points that are dragged where they belong.
  end() { this.handles.forEach((move) => move()); }
}

function ticks(low, high, most) {
  const raw = (high - low) / most, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= raw * 0.999), first = Math.ceil(low / step - 1e-9);
  return [...Array(Math.floor(high / step + 1e-9) - first + 1).keys()].map((k) => Number(((first + k) * step).toPrecision(12)));
}

const powers = (low, high) => {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9), by = last - first > 6 ? 2 : 1;
  return [...Array(last - first + 1).keys()].filter((k) => k % by === 0).map((k) => 10 ** (first + k));
};

// Draw now, whenever an input changes, and whenever the width does; one drawing a frame at most.
function live(host, draw, ...inputs) {
  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
  inputs.forEach((input) => input.addEventListener("input", soon));
  new ResizeObserver(soon).observe(host);
  draw();
  return soon;
}

const valueOf = (id) => Number(byId(id).value);
function tell(id, text) { byId(id).textContent = text; }

// Buttons of which one is pressed; `chosen` is called with its value.
function choice(id, chosen) {
  const buttons = [...byId(id).querySelectorAll("button")];
  buttons.forEach((button) => button.addEventListener("click", () => {
    buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
    chosen(button.value);
  }));
}
