// A text model that types: the probabilities of the next token, and a button that draws from them.

"use strict";

const MOST_NEXT = 16; // tokens whose probabilities are drawn
const LEAST_NEXT = 1e-3; // probability of a token that is drawn
const TYPED_AT_ONCE = 60; // tokens for one press of the button
const TYPING_PAUSE = 70; // milliseconds between two tokens

// Uniform numbers in [0, 1) from a seed: mulberry32.
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// A token from softmax(logits/temperature), by one uniform number; temperature 0 takes the first of the most likely ones.
function drawn(logits, temperature, uniform) {
  const top = logits.reduce((a, b) => Math.max(a, b));
  if (temperature === 0) return logits.indexOf(top);
  const p = softmax(logits.map((v) => (v - top) / temperature));
  let sum = 0;
  for (let t = 0; t < p.length; t++) { sum += p[t]; if (uniform < sum) return t; }
  return p.length - 1 - [...p].reverse().findIndex((v) => v > 0); // the sum may be rounded below 1
}

// The tokens that may well come next, the likeliest first, and the probabilities of all.
function nextTokens() {
  const { layer, at, row } = SEQUENCE, p = softmax(rowOf(layer, at, row).out);
  const order = Array.from(p, (_, t) => t).sort((a, b) => p[b] - p[a]);
  return { p, best: order.filter((t, i) => i === 0 || (i < MOST_NEXT && p[t] >= LEAST_NEXT)) };
}

function likeliest() {
  const { p, best } = nextTokens();
  return `the likeliest next token is “${shownToken(SEQUENCE.layer, best[0])}”, probability ${p[best[0]].toPrecision(4)}`;
}

function drawNext() {
  const { layer, row } = SEQUENCE, { p, best } = nextTokens();
  byId("next-title").textContent = `The next token after ${rowName(row)}`;
  const names = best.map((t, i) => `${shownToken(layer, t)}${"\u200b".repeat(i)}`); // tokens that look alike keep their own bars
  bars("next", names, best.map((t) => p[t]), "probability", BLUE, 90 + 20 * MOST_NEXT);
  window.nextNow = Array.from(p); // for tests
}

function typeToken() {
  const { layer, at } = SEQUENCE, logits = rowOf(layer, at, at.x.length - 1).out;
  const token = drawn(logits, Number(byId("temperature").value), SEQUENCE.typing.random());
  if (token === layer.first) { SEQUENCE.typing.left = 0; return; } // a new text begins
  byId("typed").value += layer.names[token];
  SEQUENCE.typing.left--;
  takeTokens([...SEQUENCE.typed, token]);
}

function typeOn() {
  if (SEQUENCE.typing) { stopTyping(); return; }
  if (!readTyped()) return;
  const own = (SEQUENCE.typing = { random: randomFrom(Number(byId("seed").value)), left: TYPED_AT_ONCE });
  byId("type-on").textContent = "Stop";
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const step = () => {
    if (SEQUENCE.typing !== own) return;
    do { typeToken(); } while (still && own.left > 0);
    byId("typed").scrollTop = byId("typed").scrollHeight;
    if (own.left === 0) { stopTyping(); return; }
    drawCells();
    drawChoice();
    setTimeout(step, TYPING_PAUSE);
  };
  step();
}

function stopTyping() {
  SEQUENCE.typing = null;
  byId("type-on").textContent = "Type on";
  showTokens(SEQUENCE.typed);
}

function showTyping() {
  byId("type-on").addEventListener("click", typeOn);
  byId("typed").addEventListener("input", () => { if (SEQUENCE.typing) stopTyping(); });
  byId("temperature").addEventListener("input", (event) => { byId("temperature-shown").value = event.target.value; });
}
