// The form: what is asked for, live parsing, and the link that restores it.

import { answer, Refusal } from "./stream.js";

const FIELDS = ["formula", "domain", "tolerance", "method", "construction", "dtype"];
const PLAIN = { method: "polished", construction: "auto", dtype: "float64" };
const at = (id) => document.getElementById(id);

export function wish() {
  const found = Object.fromEntries(FIELDS.map((name) => [name, at(name).value.trim()]));
  return { ...found, tolerance: Number(found.tolerance) };
}

export function fill(given) {
  for (const name of FIELDS) {
    const value = given[name] ?? PLAIN[name];
    if (value !== undefined && value !== null) at(name).value = name === "tolerance" ? shortest(Number(value)) : value;
  }
  at("epsilon").value = Math.log10(Number(at("tolerance").value) || 1e-2);
}

const shortest = (v) => (v >= 1e-3 && v < 1e4 ? String(Number(v.toPrecision(3))) : v.toExponential().replace(/(\.\d{2})\d+/, "$1"));

export function linkOf(asked, point) {
  const parts = new URLSearchParams(Object.entries(asked).filter(([name, value]) => PLAIN[name] !== value));
  if (point) parts.set("at", point.map((v) => Number(v.toPrecision(6))).join(","));
  return `${location.origin}/#${parts}`;
}

export function fromLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (!parts.has("formula")) return null;
  const given = Object.fromEntries(FIELDS.filter((name) => parts.has(name)).map((name) => [name, parts.get(name)]));
  const point = (parts.get("at") ?? "").split(",").map(Number);
  return { given, point: parts.has("at") && point.every(Number.isFinite) ? point : null };
}

let asking = null;
export async function parse() {
  if (asking) asking.abort();
  const own = (asking = new AbortController());
  const said = at("said");
  try {
    const found = await answer("/api/parse", wish(), own.signal);
    const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
    said.textContent = `${many(found.names.length, "variable")}, ${many(found.outputs, "output")}: ${found.domain}`;
    mark(false);
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    said.textContent = error instanceof Refusal ? `Asked: ${error.asked}. Found: ${error.found}. Change: ${error.change}.` : "The server does not answer.";
    mark(true);
    return false;
  }
}

const mark = (wrong) => ["formula", "domain"].forEach((name) => at(name).setAttribute("aria-invalid", wrong));

let timer = 0;
export function listen(presets, build) {
  const list = at("preset");
  list.replaceChildren(new Option("your own function", ""), ...presets.map((p, i) => new Option(p.name, i)));
  list.addEventListener("change", () => {
    if (list.value === "") return;
    fill(presets[Number(list.value)]);
    parse().then((good) => good && build());
  });
  for (const name of ["formula", "domain"]) {
    at(name).addEventListener("input", () => {
      list.value = "";
      clearTimeout(timer);
      timer = setTimeout(parse, 150);
    });
  }
  at("formula").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); build(); }
  });
  at("epsilon").addEventListener("input", () => { at("tolerance").value = shortest(10 ** Number(at("epsilon").value)); });
  at("epsilon").addEventListener("change", () => build());
  at("tolerance").addEventListener("input", () => {
    const value = Number(at("tolerance").value);
    if (value > 0) at("epsilon").value = Math.log10(value);
  });
  for (const name of ["method", "construction", "dtype"]) at(name).addEventListener("change", () => build());
  at("wish").addEventListener("submit", (event) => { event.preventDefault(); build(); });
}
