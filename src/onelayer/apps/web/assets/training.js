// "Train the same size": the error of gradient descent as it runs, against the error and the bound of the construction.

import { atLeast } from "./numbers.js";
import { events, Refusal } from "./stream.js";

const at = (id) => document.getElementById(id);
let running = null, moments = [], built = null;

export function setOpponent(found, asked) {
  stop();
  built = { ...found, asked };
  moments = [];
  at("training-status").textContent = "";
  for (const id of ["convergence", "trained"]) Plotly.purge(id);
}

export function stop() {
  if (running) running.abort();
}

export async function train() {
  if (!built || running) return;
  const own = (running = new AbortController()), layer = built;
  moments = [];
  at("train").disabled = true;
  at("stop").disabled = false;
  // Say nothing about a layer that has been replaced; start and end are read aloud, steps are not.
  const say = (text, live = "polite") => {
    if (built !== layer) return;
    at("training-status").setAttribute("aria-live", live);
    at("training-status").textContent = text;
  };
  say("starting");
  try {
    let size = null;
    for await (const event of events("/api/train", { ...layer.asked, parameters: layer.parameters }, own.signal)) {
      if (event.event === "queued") say(`waiting: place ${event.position} in the queue`);
      if (event.event === "size") size = event;
      if (event.event === "error") throw new Refusal(event);
      if (event.event === "moment") {
        moments.push(event);
        say(`step ${event.step.toLocaleString("en")} of ${size.steps.toLocaleString("en")}, ${size.parameters.toLocaleString("en")} parameters, ${event.seconds.toFixed(1)} s: largest error ${atLeast(event.largest)}`, "off");
        soon("training", redraw);
      }
      if (event.event === "trained") say(`${at("training-status").textContent} (done)`);
    }
  } catch (error) {
    if (error.name === "AbortError") say(`${at("training-status").textContent} (stopped)`);
    else if (error instanceof Refusal) say(`Asked: ${error.asked}. Found: ${error.found}. Change: ${error.change}.`);
    else throw error;
  } finally {
    running = null;
    at("train").disabled = false;
    at("stop").disabled = true;
  }
}

export function redraw() {
  if (!moments.length) return;
  const last = moments[moments.length - 1], steps = moments.map((m) => m.step), ends = [0, Math.max(...steps)];
  const flat = (value, text, name, colour, dash) => ({ x: ends, y: [value, value], name, mode: "lines", line: { color: colour, dash, width: 3 }, hovertemplate: `${text}<extra>${name}</extra>` });
  const lines = [{ x: steps, y: moments.map((m) => m.largest), name: "trained, observed", mode: "lines", text: moments.map((m) => atLeast(m.largest)), hovertemplate: "%{text}<extra>trained, observed</extra>", line: { color: VERMILION, width: 2 } }];
  if (built.observed !== null) lines.push(flat(built.observed, built.observed_text, "constructed, observed", BLUE, "dot"));
  if (built.bound !== null) lines.push(flat(built.bound, built.bound_text, "constructed, proved bound", GREEN, "solid"));
  const look = { font: FONT, height: 380, margin: { l: 70, r: 16, t: 30, b: 50 } };
  const log = { type: "log", exponentformat: "power", title: { text: "largest error" } };
  Plotly.react("convergence", lines, themed({ ...look, yaxis: log, xaxis: { title: { text: "step" } }, legend: { orientation: "h", y: 1.15 } }), LOOK);
  const error = Array.from(decoded(last.error).data), [x, y] = last.axes, names = built.names, oneVariable = y === undefined;
  const data = oneVariable
    ? [{ x, y: error, mode: "lines", line: { color: VERMILION } }]
    : [{ type: "heatmap", x, y, z: y.map((_, j) => x.map((_, i) => error[i * y.length + j])), zmid: 0, ...built.colours, colorbar: { exponentformat: "power", thickness: 12 } }];
  const band = oneVariable && built.bound !== null ? [{ type: "rect", xref: "paper", x0: 0, x1: 1, y0: -built.bound, y1: built.bound, fillcolor: GREEN, opacity: 0.25, line: { width: 0 } }] : [];
  const parts = ["T − f, trained", built.outputs > 1 ? "first output" : "", names.length > 2 ? "the other variables at the centre" : "", band.length ? "green: the construction's band" : ""];
  const title = { text: parts.filter(Boolean).join("; "), font: { size: 14 } };
  Plotly.react("trained", data, themed({ ...look, title, shapes: band, xaxis: { title: { text: names[0] } }, yaxis: { title: { text: oneVariable ? "T − f" : names[1] }, exponentformat: "power" } }), LOOK);
}
