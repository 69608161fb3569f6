// The panel beside the picture: f(x), T(x), their difference, what is proved, and the heads that fire, at the point one looks at.
// What is said of a coarse layer, or of one too large for the page, is read from the picture.

import { about, between } from "./numbers.js";
import { boundAt, goTo, inScene, outputOf, view } from "./point.js";
import { speak } from "./speech.js";

const at = (id) => document.getElementById(id);
const SHOWN_HEADS = 5, ON_GRID = 1e-9; // share of a step
const AWAY = 400; // milliseconds after which the panel returns to the point that is kept
const KEYS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, -1], ArrowUp: [1, 1] };
const digits = (v) => String(Number(v.toPrecision(7))).replace("-", "−");
const signed = (v) => `${v < 0 ? "−" : "+"}${about(Math.abs(v))}`;

// The number of a point of a picture, and its coordinates; null where none is near enough.
function onGrid(number, x, share = 0.5) {
  const scene = DATA.scenes[number], drawn = view.drawn[number], own = x.slice();
  const others = view.names.map((_, j) => j).filter((j) => !drawn.includes(j));
  let index = 0;
  for (const [i, stops] of scene.stops.entries()) {
    const stop = stops.reduce((best, s, k) => (Math.abs(s - x[others[i]]) < Math.abs(stops[best] - x[others[i]]) ? k : best), 0);
    if (share < 0.5 && Math.abs(stops[stop] - x[others[i]]) > ON_GRID * Math.abs(view.ends[1][others[i]] - view.ends[0][others[i]])) return null;
    own[others[i]] = stops[stop];
    index = index * stops.length + stop;
  }
  for (const [i, j] of drawn.entries()) {
    const [low, high] = [view.ends[0][j], view.ends[1][j]], last = scene.sides[i] - 1, place = ((x[j] - low) / (high - low)) * last;
    const step = Math.min(last, Math.max(0, Math.round(place)));
    if (!(Math.abs(place - step) <= share)) return null;
    own[j] = low + (step / last) * (high - low);
    index = index * scene.sides[i] + step;
  }
  return { index, x: own };
}

// Values at a point: computed by the page where it holds the layer, otherwise read from the picture.
function valuesAt(x, output) {
  if (DATA.layer) {
    const found = explained(DATA.layer, x, output);
    return { found, T: found.value, f: targetAt(DATA.layer.target, x, output) };
  }
  for (const [number, scene] of DATA.scenes.entries()) {
    const there = onGrid(number, x, ON_GRID), m = scene.T.shape[scene.T.shape.length - 1];
    if (!there || output >= m) continue;
    const T = scene.T.data[there.index * m + output], error = scene.error ? scene.error.data[there.index * m + output] : NaN;
    const f = Number.isFinite(error) ? T - error : scene.f ? scene.f.data[there.index * m + output] : NaN;
    return { T, f: Number.isFinite(f) ? f : null };
  }
  return { T: null, f: null };
}

function showHere(x, output = 0) {
  if (!DATA || !view) return;
  const { found, T, f } = valuesAt(x, output), bound = view.bound === null ? null : boundAt(x, output);
  at("here-x").textContent = view.names.map((name, j) => `${name} = ${digits(x[j])}`).join(", ");
  at("here-T").textContent = T === null ? "not computed in the page" : digits(T);
  const range = bound && T !== null ? `between ${between(T - bound.size, T + bound.size).join(" and ")}` : "not known here";
  at("here-f").textContent = f === null ? range : digits(f);
  at("here-difference").textContent = f === null || T === null ? "–" : signed(T - f);
  at("here-where").textContent = bound ? `proved ${bound.boxes ? "around here" : "everywhere"}` : "proved";
  at("here-bound").textContent = bound ? `|T − f| ≤ ${bound.text}` : "nothing yet";
  at("here-bound").parentElement.toggleAttribute("data-yes", Boolean(bound));
  const band = at("band"), known = bound && f !== null && bound.size > 0;
  band.hidden = !known;
  if (known) band.firstElementChild.style.left = `${50 + 50 * Math.max(-1, Math.min(1, (T - f) / bound.size))}%`;
  showHeads(found);
}

// The heads, or the tokens of a head, that add most; with all the rest they make T(x).
function showHeads(found) {
  const place = at("here-heads");
  if (!found?.byHead) return place.replaceChildren();
  const all = terms(found).sort((a, b) => Math.abs(b.value) - Math.abs(a.value)), most = Math.abs(all[0]?.value ?? 0) || 1;
  const shown = all.slice(0, SHOWN_HEADS), rest = { name: "all the rest", value: found.value - shown.reduce((s, { value }) => s + value, 0) };
  const rows = [...shown, rest, { name: "= T(x)", value: found.value, whole: true }];
  place.replaceChildren(...rows.map(({ name, value, whole }) => {
    const row = document.createElement("li"), [label, bar, number] = ["span", "span", "span"].map((tag) => document.createElement(tag));
    label.textContent = name;
    number.textContent = whole ? signed(value).replace("+", "") : signed(value);
    if (name === rest.name || whole) {
      row.append(label, document.createElement("span"), number);
      row.className = whole ? "whole" : "";
      return row;
    }
    bar.className = "bar";
    const part = document.createElement("i");
    part.style.width = `${(100 * Math.abs(value)) / most}%`;
    part.className = value < 0 ? "less" : "more";
    bar.append(part);
    row.append(label, bar, number);
    return row;
  }));
}

// -- where one looks ------------------------------------------------------------------------------------------------

let kept = null, leaving = 0, settling = 0; // the point that is kept: {x, output}

export const keptPoint = () => kept?.x;

// Start on the picture, where f is known: at the point given, or near the layer's own first point.
export function lookAt(x) {
  kept = { x: x ?? onGrid(0, nearStart())?.x ?? nearStart(), output: 0 };
  if (DATA.layer) goTo(kept.x); else showHere(kept.x);
}

// The point that was kept, if it fits; otherwise off the centre, where symmetry would hide things.
function nearStart() {
  const [low, high] = view.ends, before = kept?.x, fits = before?.length === low.length && before.every((v, j) => low[j] <= v && v <= high[j]);
  return fits ? before : DATA.layer?.start.slice() ?? low.map((v, j) => v + (0.5 + 0.15 * Math.cos(1 + 2 * j)) * (high[j] - v));
}

document.addEventListener("moved", ({ detail: { x, output } }) => { kept = { x, output }; showHere(x, output); });
document.addEventListener("proved", () => { if (kept) showHere(kept.x, kept.output); });

export function hoverable(place, number) {
  place.on("plotly_hover", ({ points: [p] }) => {
    if (p.data.hoverinfo === "skip") return;
    clearTimeout(leaving);
    const x = inScene(p, number);
    showHere(onGrid(number, x)?.x ?? x, Number(outputOf(number) ?? 0));
  });
  place.on("plotly_unhover", () => {
    clearTimeout(leaving);
    leaving = setTimeout(() => { if (kept) showHere(kept.x, kept.output); }, AWAY);
  });
}

// Arrow keys move the point by one step of the first picture; the figures below follow when they rest.
export function steppable(place) {
  place.addEventListener("keydown", (event) => {
    const move = KEYS[event.key], drawn = view?.drawn[0], inForm = event.target.closest("form");
    if (!move || !drawn || !kept || inForm || move[0] >= drawn.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const j = drawn[move[0]], [low, high] = [view.ends[0][j], view.ends[1][j]], x = kept.x.slice();
    x[j] = Math.min(high, Math.max(low, x[j] + (move[1] * (event.shiftKey ? 5 : 1) * (high - low)) / (DATA.scenes[0].sides[move[0]] - 1)));
    kept = { ...kept, x: onGrid(0, x)?.x ?? x };
    showHere(kept.x, kept.output);
    speak(`${at("here-x").textContent}: f ${at("here-f").textContent}, T ${at("here-T").textContent}, difference ${at("here-difference").textContent}`);
    clearTimeout(settling);
    settling = setTimeout(() => goTo(kept.x), 150);
  });
}
