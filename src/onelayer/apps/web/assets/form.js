// The form: the request, live parsing, and the link that restores it.

import { answer, Refusal, NoAnswer } from "./stream.js";

const FIELDS = ["formula", "domain", "tolerance", "method", "construction", "dtype", "slope_tolerance", "properties"];
const DEFAULTS = { method: "polished", construction: "auto", dtype: "float64", slope_tolerance: "", properties: "" };
const TYPED = ["formula", "domain", "tolerance", "slope_tolerance", "properties"];
const at = (id) => document.getElementById(id);

export function request() {
  const given = FIELDS.map((name) => [name, at(name).value.trim()]).filter(([name, value]) => value !== "" || DEFAULTS[name] !== "");
  const isNumber = ([name, value]) => name.endsWith("tolerance") && value && Number.isFinite(Number(value)); // if not, the server says so
  return Object.fromEntries(given.map((pair) => (isNumber(pair) ? [pair[0], Number(pair[1])] : pair)));
}

export function fill(given) {
  for (const name of FIELDS) {
    const value = given[name] ?? DEFAULTS[name];
    if (value !== undefined && value !== null) at(name).value = value;
  }
  at("preset").value = "";
  moveSlider();
}

// Move the slider to the tolerance that was typed; a screen reader reads the tolerance, not its logarithm.
function moveSlider() {
  const value = Number(at("tolerance").value);
  if (value > 0) at("epsilon").value = Math.log10(value);
  at("epsilon").setAttribute("aria-valuetext", at("tolerance").value);
}

const shortest = (v) => (v >= 1e-3 ? String(Number(v.toPrecision(3))) : v.toExponential(2).replace(/\.?0+e/, "e"));

export function linkOf(asked, point) {
  const parts = new URLSearchParams(Object.entries(asked).filter(([name, value]) => DEFAULTS[name] !== value));
  if (point) parts.set("at", point.join(","));
  return `${location.origin}/#${parts}`;
}

export function fromLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (!parts.has("formula")) return null;
  const given = Object.fromEntries(FIELDS.filter((name) => parts.has(name)).map((name) => [name, parts.get(name)]));
  const point = (parts.get("at") ?? "").split(",").map((part) => (part.trim() ? Number(part) : NaN));
  return { given, point: point.every(Number.isFinite) ? point : null };
}

let asking = null;
export async function parse() {
  if (asking) asking.abort();
  const own = (asking = new AbortController());
  try {
    const found = await answer("/api/parse", request(), own.signal);
    typeset(found.mathml);
    const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
    say(`${many(found.names.length, "variable")}, ${many(found.outputs, "output")}: ${found.domain}`, []);
    return true;
  } catch (error) {
    if (error.name === "AbortError") return null; // something else is typed by now
    if (!(error instanceof Refusal)) throw error;
    const own = TYPED.slice(2).filter((name) => error.asked.startsWith(name)), wrong = own.length ? own : error.asked.startsWith("a formula") ? ["formula"] : ["formula", "domain"];
    at("typeset").dataset.old = "yes";
    if (error instanceof NoAnswer) say("The server does not answer.", []);
    else say(`Asked: ${error.asked}. Found: ${error.found}. Change: ${error.change}.`, wrong);
    return false;
  }
}

// The formula as the server has read it.
function typeset(mathml) {
  const place = at("typeset");
  delete place.dataset.old;
  if (place.innerHTML !== mathml) place.innerHTML = mathml; // made by the server, every text in it escaped
}

function say(text, wrong) {
  if (at("parse-status").textContent !== text) at("parse-status").textContent = text;
  for (const name of TYPED) at(name).setAttribute("aria-invalid", wrong.includes(name));
}

// `typed` after every change of a field, `dragged` while ε is moved, `build` where a choice is final.
export function listen(presets, { typed, dragged, build }) {
  const list = at("preset");
  list.replaceChildren(new Option("your own function", ""), ...presets.map((p, i) => new Option(p.name, i)));
  list.addEventListener("change", () => {
    const chosen = list.value;
    if (chosen === "") return;
    fill(presets[Number(chosen)]);
    list.value = chosen;
    build();
  });
  for (const name of TYPED) {
    at(name).addEventListener("input", () => {
      if (name === "tolerance") moveSlider(); else list.value = "";
      typed();
    });
  }
  at("formula").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); build(); }
  });
  at("epsilon").addEventListener("input", () => {
    at("tolerance").value = shortest(10 ** Number(at("epsilon").value));
    at("epsilon").setAttribute("aria-valuetext", at("tolerance").value);
    dragged();
  });
  for (const name of ["method", "construction", "dtype"]) at(name).addEventListener("change", build);
  at("request").addEventListener("submit", (event) => { event.preventDefault(); build(); });
}
