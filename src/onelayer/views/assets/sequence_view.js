// The layer at a sequence: cells, answers, and the attention weights of the position that asks. `showSequence(layer)` starts it.

"use strict";

const MOST_MAP = 40; // tokens of a sequence whose whole map is drawn
const MOST_HEADS = 40; // heads drawn below one another
let SEQUENCE = null; // what is shown: {layer, typed, at, row, head}, and typing: {random, left} while a text model types
const GREYS = [[0, "#9aa3ad"], [1, "#9aa3ad"]];
const byId = (id) => document.getElementById(id);

function showSequence(layer) {
  for (const name of Object.keys(layer.weights)) layer.weights[name] = decoded(layer.weights[name]);
  SEQUENCE = { layer, at: null, row: 0, head: 0 };
  byId("typed").value = layer.text;
  byId("typed").addEventListener("input", readTyped);
  byId("head")?.addEventListener("change", (event) => { SEQUENCE.head = Number(event.target.value); drawChoice(); });
  byId("cells").addEventListener("click", (event) => {
    const cell = event.target.closest("[aria-selected]");
    if (cell) choose(Number(cell.dataset.row));
  });
  byId("cells").addEventListener("keydown", moveByKey);
  byId("sequence-form").addEventListener("submit", (event) => event.preventDefault());
  byId("random")?.addEventListener("click", () => replaceBy(SEQUENCE.at.x.map(() => randomToken(layer))));
  byId("longer")?.addEventListener("click", () => replaceBy([...SEQUENCE.at.x, randomToken(layer)].slice(0, layer.most)));
  byId("shorter")?.addEventListener("click", () => replaceBy(SEQUENCE.at.x.slice(0, Math.max(1, SEQUENCE.at.x.length - 1))));
  readTyped();
}

function replaceBy(x) {
  byId("typed").value = typedText(SEQUENCE.layer, x);
  readTyped();
}

// Read the field, and show the sequence in it; a field that cannot be read leaves the last one.
function readTyped() {
  const found = sequenceIn(SEQUENCE.layer, byId("typed").value);
  byId("typed").setAttribute("aria-invalid", found.wrong ? "true" : "false");
  if (found.wrong) byId("sequence-status").textContent = found.wrong;
  else showTokens(found.x);
  return !found.wrong;
}

function showTokens(typed) {
  takeTokens(typed);
  drawCells();
  drawChoice();
}

function takeTokens(typed) {
  const layer = SEQUENCE.layer, x = layer.language ? context(layer, typed) : typed, before = SEQUENCE.at;
  SEQUENCE.typed = typed;
  SEQUENCE.at = prepared(layer, x, before);
  if (!SEQUENCE.typing) byId("sequence-status").textContent = statusOf(layer, typed, x);
  const queries = queriesOf(layer, SEQUENCE.at), last = queries.length - 1;
  if (layer.language || !queries.includes(SEQUENCE.row)) SEQUENCE.row = queries[last];
  else if (!before) SEQUENCE.row = queries[Math.floor((2 * last) / 3)]; // what a causal layer hides is seen at once
}

function statusOf(layer, typed, x) {
  const count = `${typed.length.toLocaleString("en")} ${layer.vocabulary ? "token" : "number"}${typed.length === 1 ? "" : "s"}`;
  if (x.length < typed.length) return `${count}; the layer reads the last ${x.length}`;
  const outside = !layer.vocabulary && x.some((v) => v < layer.ends[0] || v > layer.ends[1]);
  return outside ? `${count}; not all between ${layer.ends.join(" and ")}: the certificate does not speak of these` : count;
}

// -- cells ----------------------------------------------------------------------------------------------------------

function element(kind, name, text) {
  const made = document.createElement(kind);
  made.className = name;
  made.textContent = text;
  return made;
}

function drawCells() {
  const { layer, at } = SEQUENCE, queries = new Set(queriesOf(layer, at));
  const cells = at.tokens.map((_, t) => {
    const data = t < at.x.length, name = data ? shownToken(layer, at.x[t]) : layer.special[t - at.x.length];
    const cell = element("span", data ? "cell" : "cell special", "");
    cell.append(element("span", "bar", ""), element("span", "token", name));
    if (queries.has(t) && !layer.language && (layer.answer === "position" || queries.size === 1)) cell.append(element("span", "answer", answerText(t)));
    cell.append(element("span", "place", data ? String(t + 1) : ""));
    cell.dataset.row = t;
    cell.dataset.label = labelOf(t, name);
    cell.setAttribute("role", "option");
    if (queries.has(t)) cell.setAttribute("aria-selected", "false");
    else cell.setAttribute("aria-disabled", "true");
    return cell;
  });
  byId("cells").replaceChildren(...cells);
}

function labelOf(t, name) {
  const { layer, at } = SEQUENCE, where = t < at.x.length ? `position ${t + 1}, ${name}` : name;
  return layer.language || layer.answer === "whole" || t >= at.x.length ? where : `${where}, answer ${answerText(t)}`;
}

// T at one row, or the one answer, as a cell shows it.
function answerText(row) {
  const { layer, at } = SEQUENCE, out = layer.answer === "whole" ? wholeAnswer(layer, at) : rowOf(layer, at, row).out;
  const answer = answerOf(layer, out);
  return answer === null ? shortNumber(out[0]) : String(answer);
}

function rowName(row) {
  const { layer, at } = SEQUENCE;
  if (row >= at.x.length) return `the ${layer.special[row - at.x.length]} token`;
  const token = shownToken(layer, at.x[row]);
  return `position ${row + 1}${layer.names ? `, “${token}”` : ` (${token})`}`;
}

function choose(row) {
  SEQUENCE.row = row;
  drawChoice();
  byId("cells").children[row].focus();
}

function moveByKey(event) {
  const queries = queriesOf(SEQUENCE.layer, SEQUENCE.at), k = queries.indexOf(SEQUENCE.row), end = queries.length - 1;
  const to = { ArrowRight: k + 1, ArrowDown: k + 1, ArrowLeft: k - 1, ArrowUp: k - 1, Home: 0, End: end }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose(queries[Math.min(end, Math.max(0, to))]);
}

// -- the position that asks -----------------------------------------------------------------------------------------

function drawChoice() {
  const { layer, at, row, head } = SEQUENCE, alpha = rowOf(layer, at, row).alpha;
  [...byId("cells").children].forEach((cell, t) => {
    const chosen = t === row, hidden = isHidden(layer, at, row, t);
    cell.classList.toggle("hidden", hidden);
    cell.title = hidden ? "hidden" : `weight ${alpha[head][t].toPrecision(4)}`;
    cell.firstChild.style.height = `${100 * alpha[head][t]}%`;
    cell.setAttribute("aria-label", `${cell.dataset.label}, ${cell.title}`);
    if (cell.ariaDisabled) return;
    cell.setAttribute("aria-selected", String(chosen));
    cell.tabIndex = chosen ? 0 : -1;
  });
  byId("value").textContent = valueText();
  if (layer.language) drawNext();
  if (!SEQUENCE.typing) { drawHeads(alpha); drawMap(); }
  const outs = layer.answer === "whole" ? wholeAnswer(layer, at) : rowOf(layer, at, row).out;
  window.sequenceNow = { x: at.x, row, head, out: Array.from(outs), alpha: alpha.map((a) => Array.from(a)) }; // for tests
}

function valueText() {
  const { layer, at, row } = SEQUENCE, whole = layer.answer === "whole";
  if (layer.language) return `After ${rowName(row)}: ${likeliest()}`;
  const out = whole ? wholeAnswer(layer, at) : rowOf(layer, at, row).out, answer = answerOf(layer, out);
  const T = out.length === 1 ? String(out[0]) : `(${Array.from(out, shortNumber).join(", ")})`;
  return `${whole ? "T" : `T at ${rowName(row)}`} = ${T}${answer === null ? "" : `, the answer is ${answer}`}`;
}

function tokenNames() {
  const { layer, at } = SEQUENCE;
  return at.tokens.map((_, t) => (t < at.x.length ? `${t + 1}: ${shownToken(layer, at.x[t])}` : layer.special[t - at.x.length]));
}

// A map of weights, [row][token]; hidden tokens are grey.
function weightMap(id, z, hidden, names, rows, axis, height, mark) {
  const few = Math.ceil(names.length / 40), shown = names.map((_, t) => t).filter((t) => t % few === 0 || t >= SEQUENCE.at.x.length);
  const base = { type: "heatmap", x: names.map((_, t) => t), y: rows.map((_, i) => i), customdata: rows.map((row) => names.map((name) => `${row} → ${name}`)) };
  const weights = { ...base, z: z.map((own, i) => own.map((a, t) => (hidden(i, t) ? null : a))), zmin: 0, zmax: 1, colorscale: "Viridis",
    colorbar: { thickness: 12 }, xgap: names.length <= MOST_MAP ? 1 : 0, ygap: 1, hoverongaps: false, hovertemplate: "%{customdata}: %{z:.4g}<extra></extra>" };
  const masks = { ...base, z: z.map((own, i) => own.map((_, t) => (hidden(i, t) ? 1 : null))), zmin: 0, zmax: 1, colorscale: GREYS,
    showscale: false, xgap: names.length <= MOST_MAP ? 1 : 0, ygap: 1, hoverongaps: false, opacity: 0.45, hovertemplate: "%{customdata}: hidden<extra></extra>" };
  const edge = { type: "rect", x0: -0.5, x1: names.length - 0.5, y0: mark - 0.5, y1: mark + 0.5, line: { color: VERMILION, width: 3 } };
  const layout = {
    font: FONT, height, margin: { l: 60, r: 16, t: 8, b: 60 }, shapes: mark < 0 ? [] : [edge],
    xaxis: { tickvals: shown, ticktext: shown.map((t) => names[t]), automargin: true, showgrid: false, zeroline: false },
    yaxis: { title: { text: axis }, tickvals: rows.map((_, i) => i), ticktext: rows, autorange: "reversed", automargin: true, showgrid: false, zeroline: false },
  };
  const place = byId(id), fresh = !place.dataset.drawn;
  Plotly.react(place, [weights, masks], themed(layout), LOOK);
  place.dataset.drawn = "yes";
  return fresh ? place : null;
}

function drawHeads(alpha) {
  const { layer, at, row, head } = SEQUENCE, shown = alpha.slice(0, MOST_HEADS);
  const cut = alpha.length > MOST_HEADS ? `, the first ${MOST_HEADS} of ${alpha.length} heads` : "";
  byId("attention-title").textContent = `Attention weights of ${rowName(row)}${cut}`;
  const fresh = weightMap("attention", shown, (_, t) => isHidden(layer, at, row, t), tokenNames(), shown.map((_, h) => `head ${h + 1}`),
    "", 130 + 22 * shown.length, head < shown.length ? head : -1);
  if (fresh && alpha.length > 1) fresh.on("plotly_click", ({ points }) => {
    SEQUENCE.head = points[0].y;
    byId("head").value = String(points[0].y);
    drawChoice();
  });
}

function drawMap() {
  const { layer, at, row, head } = SEQUENCE, queries = queriesOf(layer, at), fits = at.x.length <= MOST_MAP && queries.length > 1;
  byId("map").hidden = byId("map-title").hidden = queries.length < 2 || !fits;
  byId("map-note").hidden = queries.length < 2;
  byId("map-note").textContent = fits ? "A row for every position that asks; click one to choose it." : `All positions are drawn for sequences of up to ${MOST_MAP}.`;
  if (!fits) return;
  byId("map-title").textContent = `Head ${head + 1}: the weights of all positions`;
  const z = queries.map((q) => rowOf(layer, at, q).alpha[head]), names = tokenNames();
  const fresh = weightMap("map", z, (i, t) => isHidden(layer, at, queries[i], t), names, queries.map((q) => names[q]), "position that asks",
    150 + 19 * queries.length, queries.indexOf(row));
  fresh?.on("plotly_click", ({ points }) => choose(queriesOf(SEQUENCE.layer, SEQUENCE.at)[points[0].y]));
}
