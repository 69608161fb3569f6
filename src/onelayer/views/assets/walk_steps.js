// The steps of a walk through the layer (walk.js): equations, tables of coloured cells and sentences, with the numbers of one point.
// Needs layer.js and formula.js. Every number comes from `traced`, which is the layer itself.

"use strict";

const WalkSteps = (() => {
  const MOST_HEADS = 4, MOST_TOKENS = 7, MOST_COLUMNS = 6, MOST_UNITS = 8; // shown at once
  const NAMES = ["Tokens", "Embedding", "Queries and keys", "Scores", "Softmax", "Values", "Sum of the heads", "Feed-forward", "Read-out"];
  const KINDS = {
    gate: "A gate is a soft switch. As x crosses its threshold, its weight moves between the data tokens and a constant token.",
    max: "A max-head gives its weight to the largest of the numbers it looks at, and so passes the largest on.",
    read: "A read-head puts all its weight on one token and passes its number on.",
    memory: "A memory head compares x with stored tokens; the ones that fit best get the weight.",
    ridge: "A ridge gate is a soft switch along a slanted line a·x + b = 0.",
    bump: "A bump is a head that minds one place: near it the input's own token has the weight, elsewhere a token of value 0.",
    match: "A match head looks for tokens that equal the one that asks.",
    trained: "These heads were found by gradient descent: nobody chose what they look at.",
  };
  const WORDY = ["memory", "match", "trained"]; // kinds that are no nouns, or that tokens are named by as well

  // -- words and numbers ------------------------------------------------------------------------------------------

  const minus = (text) => text.replace(/-/g, "−");
  function number(v, digits = 4) {
    const size = Math.abs(v);
    if (v !== 0 && (size >= 1e6 || size < 1e-4)) return minus(v.toExponential(2).replace("e+", "e"));
    return minus(String(Number(v.toPrecision(digits))));
  }
  const percent = (a) => (a > 0 && a < 0.001 ? "< 0.1 %" : `${Number((100 * a).toPrecision(3))} %`);
  const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
  const order = (list, size) => Array.from(list, (_, i) => i).sort((a, b) => size(b) - size(a) || a - b);

  function make(kind, name, ...children) {
    const made = document.createElement(kind);
    if (name) made.className = name;
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  }

  // Text with W^O and k_j as it is printed: one sign or {several} behind ^ and _.
  function rich(text) {
    return text.split(/([_^](?:\{[^}]*\}|.))/u).filter(Boolean).map((part) => {
      if (!/^[_^]./u.test(part)) return part;
      return make(part[0] === "^" ? "sup" : "sub", "", part.slice(1).replace(/[{}]/g, ""));
    });
  }
  const say = (...texts) => make("p", "walk-said", texts.filter(Boolean).flatMap((text) => rich(`${text} `)));
  const equation = (text, name = "") => make("p", "walk-equation", rich(text), name ? make("span", "walk-number", name) : null);

  // A cell is red for a positive number and blue for a negative one, and the stronger the larger it is.
  function cell(v, largest, mark = "") {
    const made = make("td", `walk-cell ${v < 0 ? "minus" : "plus"} ${mark}`, number(v));
    made.style.setProperty("--share", largest > 0 ? (0.08 + 0.36 * Math.sqrt(Math.min(1, Math.abs(v) / largest))).toFixed(3) : "0");
    made.title = minus(String(v));
    return made;
  }
  const largestOf = (rows) => Math.max(...rows.flatMap((row) => Array.from(row, Math.abs)), 0);

  // A table of numbers: {title, head: [names], rows: [{name, cells, mark}], largest}. Cells that are text or elements stay as they are.
  function table({ title, head, rows, largest }) {
    const scale = largest ?? largestOf(rows.map((row) => Array.from(row.cells).filter((v) => typeof v === "number")));
    const body = rows.map((row) => {
      const cells = Array.from(row.cells, (v) => (typeof v === "number" ? cell(v, scale) : make("td", "walk-plain", v)));
      const name = make("th", "", rich(row.name));
      name.scope = "row";
      return make("tr", row.mark ?? "", name, cells);
    });
    const tops = head && make("tr", "", make("td", "walk-plain"), head.map((name) => Object.assign(make("th", "", rich(name)), { scope: "col" })));
    return make("table", "walk-table", make("caption", "", rich(title)), tops ? make("thead", "", tops) : null, make("tbody", "", body));
  }
  const vector = (title, name, values) => table({ title, rows: [{ name, cells: columns(values) }] });
  const arrow = (text = "") => make("div", "walk-arrow", make("span", "", rich(text)), "→");
  const flow = (...parts) => make("div", "walk-flow", parts.flat().filter(Boolean));

  // The first entries of a wide vector, and how many there are besides.
  function columns(values, most = MOST_COLUMNS) {
    const all = Array.from(values);
    return all.length <= most + 1 ? all : [...all.slice(0, most), `+ ${all.length - most}`];
  }
  const few = (values) => columns(values, 3); // in a card
  const numbered = (letter, cells) => cells.map((v, i) => (typeof v === "number" ? `${letter}_{${i + 1}}` : "…"));

  function bar(a) {
    const filled = make("span", "walk-filled");
    filled.style.setProperty("--width", `${(100 * a).toFixed(2)}%`);
    return make("span", "walk-bar", filled, make("span", "walk-share", percent(a)));
  }

  // -- what is shown of this point ----------------------------------------------------------------------------------

  // Everything the steps speak of: the trace, the heads in the order in which they matter, the tokens that are shown.
  function study(layer, x, output, page) {
    const trace = traced(layer, x, output), first = trace.read[0], c = layer.config;
    const size = trace.byHead ? (h) => Math.abs(trace.byHead[h]) : (h) => Math.hypot(...first.heads[h].added);
    const ranked = order(first.heads, size), start = page * MOST_HEADS, shown = ranked.slice(start, start + MOST_HEADS);
    const row = trace.rows[0], weight = (t) => Math.max(...shown.map((h) => first.heads[h].alpha[t]));
    const many = trace.tokens.length > MOST_TOKENS;
    const picked = many ? order(trace.tokens, (t) => (t === row ? 2 : weight(t))).slice(0, MOST_TOKENS).sort((a, b) => a - b) : trace.tokens.map((_, t) => t);
    const left = trace.tokens.map((_, t) => t).filter((t) => !picked.includes(t));
    const asks = layer.tokens[row], name = (h) => `${layer.kinds[h]}${WORDY.includes(layer.kinds[h]) ? " head" : ""} ${h + 1}`;
    return { layer, c, x, output, trace, first, ranked, shown, page, row, picked, left, asks, name, f: targetAt(layer.target, x, output) };
  }

  const adds = (it, h) => (it.trace.byHead ? `adds ${number(it.trace.byHead[h])} to T(x)` : "");
  function cards(it, body) {
    return make("div", "walk-cards", it.shown.map((h) => make("div", "walk-card", make("h4", "", it.name(h)), make("p", "walk-adds", adds(it, h)), body(it.first.heads[h], h))));
  }
  const tokenRows = (it, cells) => it.picked.map((t) => ({ name: it.layer.tokens[t], cells: cells(t), mark: t === it.row ? "asks" : "" }));

  // -- the steps: each gives its equations, its picture and its sentences ---------------------------------------------

  const steps = [
    (it) => {
      const { layer, c } = it, special = layer.tokens.slice(c.tokens), point = it.x.map((v, i) => `${layer.names[i] ?? `x${i + 1}`} = ${number(v, 6)}`);
      const data = layer.tokens.slice(0, c.tokens).map((name, t) => ({ name, cells: columns(layer.vocabulary ? [it.x[t]] : it.x.slice(t * c.features_in, (t + 1) * c.features_in)) }));
      const constants = special.length > 4 ? `${special.slice(0, 3).join(", ")}, … ${special[special.length - 1]}` : special.join(", ");
      return [
        equation(`x = (${point.slice(0, 6).join(", ")}${point.length > 6 ? ", …" : ""})`),
        flow(table({ title: "data tokens", rows: data.slice(0, MOST_TOKENS) }), special.length ? [make("div", "walk-arrow", "+"), make("div", "walk-chip", constants, make("small", "", "constant, the same for every x"))] : null),
        say(`The point enters as ${count(c.tokens, "token")}${c.features_in === 1 ? ", one for each number" : layer.vocabulary ? ", one for each symbol" : ` of ${count(c.features_in, "number")}`}.`,
          special.length === 1 ? `One more token, “${special[0]}”, never changes: it is part of the weights.` : special.length ? `${count(special.length, "more token")} never change: they are part of the weights.` : "",
          `The answer will be collected at “${it.asks}”.`),
      ];
    },
    (it) => {
      const { layer, c, trace } = it, w = layer.weights;
      const wide = c.features_in <= 4 ? [...Array(c.features_in).keys()].map((i) => ({ name: c.features_in === 1 ? "W^E" : `W^E ${i + 1}`, cells: columns(w.W_E.data.slice(i * c.d_model, (i + 1) * c.d_model)) })) : null;
      return [
        equation(`e_j = x̂_j W^E + b^E${w.P ? " + p_j" : ""},   x̂_j = (x_j − shift_j) · scale_j`),
        flow(wide && table({ title: "the embedding matrix", rows: wide }), wide && arrow("× x̂_j, + b^E" + (w.P ? " + p_j" : "")), table({ title: `tokens as vectors e_j of ${count(c.d_model, "number")}`, rows: tokenRows(it, (t) => columns(trace.tokens[t])) })),
        say(`Every number is scaled and written into a vector of length ${c.d_model}.`, w.P ? "A code p_j for its position is added, so that the layer can tell the tokens apart." : "There is no code for the position: the layer treats all tokens alike.",
          `The marked row, “${it.asks}”, is the one that will ask.`, more(it)),
      ];
    },
    (it) => [
      equation(`q = e_r W^Q,   k_j = e_j W^K${it.layer.weights.b_Q ? ",   each + its bias" : ""}${it.c.norm === "pre" ? ",   after LayerNorm" : ""}`),
      cards(it, (head) => [table({ title: `query of ${it.asks}`, rows: [{ name: "q", cells: few(head.q) }] }), table({ title: "keys", rows: tokenRows(it, (t) => few(head.k[t])) })]),
      say(`In every head “${it.asks}” asks a question: its query q. Every token holds a key k_j, which says what questions it can answer.`, ...[...new Set(it.shown.map((h) => KINDS[it.layer.kinds[h]]))], more(it)),
    ],
    (it) => {
      const h = it.shown[0], head = it.first.heads[h], best = order(head.scores, (t) => head.scores[t])[0];
      return [
        equation("s_j = q · k_j / √d_k", "inside Eq. (5)"),
        cards(it, (own) => table({ title: "scores", largest: visible(own.scores), head: it.c.d_k === 1 ? ["k_j", "s_j"] : ["s_j"], rows: tokenRows(it, (t) => (it.c.d_k === 1 ? [own.k[t][0], own.scores[t]] : [own.scores[t]])) })),
        say(`A score says how well a key fits the query: multiply entry by entry, add up${it.c.d_k === 1 ? "" : `, divide by √${it.c.d_k}`}. Only differences between scores will count.`, `In ${it.name(h)}, “${it.layer.tokens[best]}” fits best.`,
          it.shown.some((own) => unseen(it.first.heads[own].scores)) ? "A score hundreds below the best hides a token: that head does not look at it." : "", more(it)),
      ];
    },
    (it) => {
      const h = it.shown[0], { alpha } = it.first.heads[h], best = order(alpha, (t) => alpha[t])[0];
      return [
        equation("α_j = exp(s_j) / Σ_l exp(s_l)", "Eq. (5)"),
        cards(it, (own) => table({ title: "weights", largest: visible(own.scores), head: ["s_j", "α_j"], rows: [...tokenRows(it, (t) => [own.scores[t], bar(own.alpha[t])]), ...others(it, own, (sum) => ["", bar(sum)])] })),
        say("Softmax turns scores into weights: all positive, adding up to 1. One more point of score means e ≈ 2.72 times the weight.", `${capital(it.name(h))} gives ${percent(alpha[best])} of its weight to “${it.layer.tokens[best]}”.`, more(it)),
      ];
    },
    (it) => {
      const one = (values) => columns(values, 1), narrow = it.c.d_v === 1, h = it.shown[0], head = it.first.heads[h];
      const sum = (own) => it.left.reduce((s, t) => s + own.alpha[t] * own.v[t][0], 0);
      return [
        equation("v_j = e_j W^V"), equation("z = Σ_j α_j v_j", "Eq. (6)"), equation("Z = softmax(Q K^T / √d_k) V", "Eq. (7), all rows at once"),
        cards(it, (own) => table({
          title: narrow ? "weight × value" : "values, and their average", head: narrow ? ["α_j", "v_j", "α_j v_j"] : ["α_j", ...numbered("v", one(own.z))],
          rows: [...tokenRows(it, (t) => (narrow ? [bar(own.alpha[t]), own.v[t][0], own.alpha[t] * own.v[t][0]] : [bar(own.alpha[t]), ...one(own.v[t])])),
            ...others(it, own, (share) => (narrow ? [bar(share), "", sum(own)] : [bar(share)])),
            { name: "z", cells: narrow ? ["", "", own.z[0]] : ["", ...one(own.z)], mark: "total" }],
        })),
        say("Every token also holds a value v_j. The head takes the average of the values, each counted with its weight.", narrow ? `${capital(it.name(h))} gets z = ${number(head.z[0])}.` : "", otherSide(it), more(it)),
      ];
    },
    (it) => {
      const { c, layer, trace, first } = it, w = layer.weights, J = trace.J, dot = (v) => J.reduce((s, u, k) => s + u * v[k], 0);
      const rest = it.ranked.filter((h) => !it.shown.includes(h)), total = (heads) => heads.reduce((s, h) => s.map((v, k) => v + first.heads[h].added[k]), new Float64Array(c.d_model));
      const parts = [
        ...(c.residual ? [{ name: `${it.asks} itself`, v: trace.tokens[it.row] }] : []), ...(w.b_O ? [{ name: "b^O", v: w.b_O.data }] : []),
        ...it.shown.map((h) => ({ name: it.name(h), v: first.heads[h].added })), ...(rest.length ? [{ name: `${rest.length.toLocaleString("en")} other heads`, v: total(rest) }] : []),
      ];
      let sum = 0;
      const rows = parts.map(({ name, v }) => ({ name, cells: [...columns(v), ...(J ? [dot(v), (sum += dot(v))] : [])] }));
      const end = c.norm === "post" ? "h before LayerNorm" : "h, the sum", all = parts.reduce((s, { v }) => s.map((u, k) => u + v[k]), new Float64Array(c.d_model));
      const head = [...numbered("h", columns(all)), ...(J ? ["adds to T(x)", "so far"] : [])];
      return [
        equation("MHA(X) = Concat(Z_1, …, Z_h) W^O", "Eq. (8)"), c.residual ? equation("h = e_r + MHA(X)_r") : equation("h = MHA(X)_r"),
        flow(table({ title: `what is written into the stream of “${it.asks}”`, head, rows: [...rows, { name: end, cells: [...columns(all), ...(J ? ["", sum] : [])], mark: "total" }] })),
        say("W^O turns what every head found into a vector, and all of them are added.", c.residual ? "The residual keeps the token's own vector in the sum." : "",
          rest.length ? `The ${count(it.shown.length, "head")} shown ${it.page ? "come next" : "matter most here"}; the other ${rest.length.toLocaleString("en")} add ${J ? `${number(dot(total(rest)))} to T(x) together` : "the rest"}.` : `These are all ${count(c.heads, "head")}.`,
          J ? "The last two columns carry every line on to the answer: what it adds to T(x), and the sum so far." : ""),
      ];
    },
    (it) => {
      const { c, first } = it, top = order(first.hidden, (u) => Math.abs(first.hidden[u])).slice(0, MOST_UNITS), on = first.hidden.filter((v) => v > 0).length;
      const rows = top.map((u) => ({ name: `unit ${u + 1}`, cells: [first.before[u], first.hidden[u]] })), idle = first.fed.every((v) => v === 0);
      return [
        equation(`y = ${c.residual ? "h + " : ""}${c.activation}(h W_1 + b_1) W_2 + b_2`, "Eq. (1), twice"),
        flow(vector(c.norm === "pre" ? "into the network, after LayerNorm" : "the stream", "h", first.into), arrow("W_1, b_1"), table({ title: c.ffn_width > MOST_UNITS ? `the ${MOST_UNITS} largest of ${count(c.ffn_width, "hidden unit")}` : "hidden units", head: ["before", c.activation], rows }), arrow("W_2, b_2"), vector(c.residual ? "h + what the network adds" : "what the network makes of it", "y", first.y)),
        say(c.activation === "relu" ? `A hidden unit passes a positive number on and turns a negative one into 0. ${on.toLocaleString("en")} of ${c.ffn_width.toLocaleString("en")} units ${on === 1 ? "is" : "are"} on at this point.` : `The network bends the stream by ${c.activation}, entry by entry.`,
          idle && c.residual ? "The network adds nothing here, so the residual hands the sum of the heads on as it is." : ""),
      ];
    },
    (it) => {
      const { c, layer, trace, first } = it, w = layer.weights, out = c.features_out, k = order(first.y, (m) => Math.abs(first.y[m] * w.W_R.data[m * out + trace.entry])).slice(0, MOST_UNITS).sort((a, b) => a - b);
      const product = (m) => first.y[m] * w.W_R.data[m * out + trace.entry], b = w.b_R.data[trace.entry], hidden = trace.outs[0] - b - k.reduce((s, m) => s + product(m), 0);
      const rows = [...k.map((m) => ({ name: `y_{${m + 1}}`, cells: [first.y[m], w.W_R.data[m * out + trace.entry], product(m)] })),
        ...(k.length < c.d_model ? [{ name: `${c.d_model - k.length} others`, cells: ["", "", hidden] }] : []), { name: "b^R", cells: ["", "", b] },
        { name: trace.rows.length > 1 ? `at ${it.asks}` : "T(x)", cells: ["", "", trace.outs[0]], mark: "total" }];
      const means = trace.rows.length > 1 ? table({ title: "read at every token", rows: [...trace.rows.slice(0, MOST_TOKENS).map((row, i) => ({ name: layer.tokens[row], cells: [trace.outs[i]] })), { name: "mean, T(x)", cells: [trace.value], mark: "total" }] }) : null;
      return [
        equation("T(x) = y W^R + b^R"),
        flow(table({ title: `read-out${layer.outputs.length > 1 ? ` of ${layer.outputs[it.output]}` : ""}`, head: ["y", "W^R", "y W^R"], rows }), means && arrow("mean"), means, arrow(), answer(it)),
        say("The read-out adds the entries up, each with its factor. That is the number the layer gives for this point.",
          it.f === null ? "" : `The function itself is ${number(it.f, 6)} here.`, layer.band),
      ];
    },
  ];

  // The best score that is not hidden: softmax makes exactly 0 of what lies 746 or more below the best one.
  const DEPTH = 746;
  const visible = (scores) => Math.max(...scores.map((s) => (Math.max(...scores) - s < DEPTH ? Math.abs(s) : 0)));
  const unseen = (scores) => scores.some((s) => Math.max(...scores) - s >= DEPTH);
  // Where all gates shown keep their values on the data tokens. With the anchor's share a, the data tokens get 1 − a.
  function otherSide({ layer, c, first, shown }) {
    const gates = shown.filter((h) => layer.kinds[h] === "gate"), size = (v) => Math.hypot(...v), most = (list) => Math.max(...list.map(size));
    const onData = (h) => { const v = Array.from(first.heads[h].v); return most(v.slice(c.tokens)) < 0.05 * most(v.slice(0, c.tokens)); };
    if (layer.tokens.length !== c.tokens + 1 || !gates.length || !gates.every(onData)) return "";
    return `In these gates the data tokens carry the value and “${layer.tokens[c.tokens]}”, the constant token, almost none: the same switch as an anchor that carries the value, read from the other side.`;
  }
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const more = (it) => (it.left.length ? `${count(it.left.length, "more token")} with less weight ${it.left.length === 1 ? "is" : "are"} not listed.` : "");
  function others(it, head, cells) {
    const share = it.left.reduce((s, t) => s + head.alpha[t], 0);
    return it.left.length ? [{ name: `${it.left.length} others`, cells: cells(share) }] : [];
  }

  function answer({ trace, f }) {
    const line = (name, text) => make("div", "", make("dt", "", name), make("dd", "", text));
    const own = [line("T(x)", minus(String(trace.value)))];
    if (f !== null) own.push(line("f(x)", minus(String(f))), line("T(x) − f(x)", number(trace.value - f, 3)));
    return make("dl", "walk-answer", own);
  }

  // The number that walks: what every step has made of it, in a word.
  function headline(it, step) {
    const head = it.first.heads[it.shown[0]], { trace } = it;
    const texts = [
      () => (it.x.length <= 2 ? it.x.map((v) => number(v, 3)).join(", ") : count(it.x.length, "number")), () => `${trace.tokens.length} × ${it.c.d_model}`,
      () => (it.c.d_k === 1 ? `q = ${number(head.q[0], 3)}` : `${it.c.d_k} numbers`), () => number(Math.max(...head.scores), 3), () => percent(Math.max(...head.alpha)),
      () => (it.c.d_v === 1 ? number(head.z[0], 3) : `${it.c.d_v} numbers`), () => (trace.J ? number(trace.J.reduce((s, u, k) => s + u * it.first.h[k], 0), 3) : count(it.c.heads, "head")),
      () => `${it.first.hidden.filter((v) => v > 0).length} of ${it.c.ffn_width} on`, () => number(trace.value),
    ];
    return texts[step]();
  }

  // What every step holds, as coloured cells without numbers: rows of numbers, at most 8 by 8.
  function held(it, step) {
    const { first, trace, shown, picked, c } = it, heads = shown.map((h) => first.heads[h]), rows = (cells) => picked.map(cells);
    const found = [
      () => it.layer.tokens.slice(0, c.tokens).map((_, t) => (it.layer.vocabulary ? [it.x[t]] : it.x.slice(t * c.features_in, (t + 1) * c.features_in))),
      () => rows((t) => trace.tokens[t]), () => rows((t) => heads.flatMap((head) => Array.from(head.k[t]))), () => rows((t) => heads.map((head) => Math.max(head.scores[t], -visible(head.scores)))),
      () => rows((t) => heads.map((head) => head.alpha[t])), () => heads.map((head) => head.z), () => [...heads.map((head) => head.added), first.h],
      () => [first.before, first.hidden], () => [[trace.value]],
    ];
    return found[step]().slice(0, 8).map((row) => Array.from(row).slice(0, 8));
  }

  function miniature(it, step) {
    const rows = held(it, step), largest = largestOf(rows), share = (v) => (largest > 0 ? (0.12 + 0.88 * Math.sqrt(Math.abs(v) / largest)).toFixed(2) : "0.12");
    const made = make("span", "walk-mini", rows.flatMap((row) => row.map((v) => { const one = make("i", v < 0 ? "minus" : "plus"); one.style.setProperty("--share", share(v)); return one; })));
    made.style.setProperty("--columns", rows[0].length);
    made.style.setProperty("--size", rows[0].length <= 4 && rows.length <= 5 ? "15px" : "10px");
    made.setAttribute("aria-hidden", "true");
    return made;
  }

  return { MOST_HEADS, NAMES, make, number, study, steps, headline, miniature };
})();
