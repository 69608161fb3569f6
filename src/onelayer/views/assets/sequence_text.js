// Sequences as they are typed: numbers, or tokens with names. Everything here is plain functions of the layer's record.

"use strict";

// The tokens of a text, {x} or {wrong: what is the matter}. Named tokens are read by longest match.
function sequenceIn(layer, text) {
  const found = layer.names ? namedTokens(layer, text) : numbersIn(layer, text);
  if (found.wrong || layer.language) return found;
  if (!found.x.length) return { wrong: `type a sequence of 1 to ${layer.longest.toLocaleString("en")}` };
  if (found.x.length <= layer.most) return found;
  const where = layer.most < layer.longest ? " on this page" : "";
  return { wrong: `at most ${layer.most.toLocaleString("en")}${where}: these are ${found.x.length.toLocaleString("en")}` };
}

function numbersIn(layer, text) {
  const x = [];
  for (const word of text.split(/[\s,;]+/).filter(Boolean)) {
    const value = Number(word.replace("−", "-"));
    if (!Number.isFinite(value)) return { wrong: `“${word}” is not a number` };
    if (layer.vocabulary && !(Number.isInteger(value) && value >= 0 && value < layer.vocabulary)) {
      return { wrong: `tokens are 0 to ${layer.vocabulary - 1}, not ${word}` };
    }
    x.push(value);
  }
  return { x };
}

function namedTokens(layer, text) {
  layer.numbers ??= new Map(layer.names.map((name, i) => [name, i]).filter(([, i]) => i !== layer.first));
  layer.widest ??= Math.max(...[...layer.numbers.keys()].map((name) => name.length));
  const x = layer.first === null ? [] : [layer.first];
  for (let at = 0; at < text.length;) {
    if (!layer.language && /[\s,;]/.test(text[at])) { at++; continue; }
    let size = Math.min(layer.widest, text.length - at);
    while (size > 0 && !layer.numbers.has(text.slice(at, at + size))) size--;
    if (!size) return { wrong: `no token begins “${text.slice(at, at + 12)}”` };
    x.push(layer.numbers.get(text.slice(at, at + size)));
    at += size;
  }
  return x.length ? { x } : { wrong: "type a text" };
}

// Of a long text, the last tokens: the beginning stays the same while some more are typed.
function context(layer, x) {
  const step = Math.max(1, Math.floor(layer.most / 2)), over = x.length - layer.most;
  return over > 0 ? x.slice(Math.ceil(over / step) * step) : x;
}

// How a token is shown in a cell.
function shownToken(layer, token) {
  if (!layer.names) return layer.vocabulary ? String(token) : shortNumber(token);
  return layer.language ? layer.names[token].replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "∅" : layer.names[token];
}

function shortNumber(value) {
  const text = String(Number(value.toPrecision(4)));
  return text.length <= 8 ? text : value.toExponential(2);
}

// A sequence as it is typed.
function typedText(layer, x) {
  if (layer.language) return x.filter((t) => t !== layer.first).map((t) => layer.names[t]).join("");
  if (!layer.names) return x.join(" ");
  return x.map((t) => layer.names[t]).join(layer.names.every((name) => name.length === 1) ? "" : " ");
}

function randomToken(layer) {
  if (layer.vocabulary) return Math.floor(Math.random() * layer.vocabulary);
  const [low, high] = layer.drawn;
  return Math.min(high, Math.max(low, Number((low + (high - low) * Math.random()).toPrecision(3))));
}
