// One point through the layer, step by step: `Walk.mount(element, layer, x)`, forwards, backwards or by itself.
// `layer` is the record of views/pages.py. Needs walk_steps.js. Readers who prefer reduced motion get the steps alone.

"use strict";

globalThis.Walk = (() => {
  const { MOST_HEADS, NAMES, make, number, study, steps, headline, miniature } = WalkSteps;
  const MOST_SLIDERS = 12, PAUSE = 4500; // milliseconds at a step while it plays
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  function button(text, label, act) {
    const made = make("button", "", text);
    made.type = "button";
    if (label) made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  }

  function sliders(layer, state, moved) {
    const made = layer.names.slice(0, MOST_SLIDERS).map((name, j) => {
      const input = make("input"), shown = make("output"), [low, high] = [layer.ends[0][j], layer.ends[1][j]];
      Object.assign(input, { type: "range", min: low, max: high, step: layer.vocabulary ? 1 : "any", value: state.x[j] });
      input.addEventListener("input", () => { state.x[j] = Number(input.value); moved(); });
      return { element: make("label", "", make("span", "", name), input, shown), show: () => { input.value = state.x[j]; shown.value = number(state.x[j], 5); } };
    });
    if (layer.outputs.length > 1) {
      const select = make("select", "", layer.outputs.map((name, o) => Object.assign(make("option", "", name), { value: o })));
      select.addEventListener("input", () => { state.output = Number(select.value); moved(); });
      made.push({ element: make("label", "", make("span", "", "shown"), select), show: () => { select.value = state.output; } });
    }
    return made;
  }

  // Show the walk in an element. A second call there moves the point, or shows another layer at the same step. `onMove(x, output)` is told
  // when the reader moves the point here. Returns {moveTo(x, output), go(step), play(), pause(), step, remove()}.
  function mount(place, layer, x = layer.start, { output = 0, onMove = () => {} } = {}) {
    const before = place.walk;
    if (before?.layer === layer) { before.moveTo(x); return before; }
    before?.remove();
    for (const [name, record] of Object.entries(layer.weights)) if (record.base64) layer.weights[name] = decoded(record);
    const state = { x: Array.from(x), output, step: before?.step ?? 0, page: 0, timer: null, it: null };
    const strip = make("ol", "walk-strip"), dot = make("li", "walk-dot"), panel = make("div", "walk-panel"), pager = make("div", "walk-pager");
    dot.setAttribute("aria-hidden", "true");
    const chips = NAMES.map((_, i) => button("", "", () => { pause(); go(i); }));
    strip.append(dot, ...chips.map((chip) => make("li", "", chip)));
    const back = button("← Back", "", () => { pause(); go(state.step - 1); }), next = button("Next →", "", () => { pause(); go(state.step + 1); }), playing = button("Play", "", () => (state.timer ? pause() : play()));
    const own = sliders(layer, state, () => { pause(); show(false); onMove(state.x.slice(), state.output); });
    const root = make("div", "walk", make("form", "walk-point", own.map((one) => one.element)), strip, make("div", "walk-controls", back, playing, next, make("span", "walk-keys", "keys ← → and space"), pager), panel);
    root.tabIndex = 0;
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "Step through the calculation. Arrow keys move, space plays.");
    panel.setAttribute("aria-live", "polite");
    const inside = (h) => h.shown.length < h.first.heads.length && state.step >= 2 && state.step <= 6;

    function page(by) { state.page += by; show(false); }
    function drawPager() {
      const { it } = state, first = state.page * MOST_HEADS, end = first + it.shown.length, all = it.first.heads.length;
      pager.hidden = !inside(it);
      const less = button("‹", "the heads before", () => page(-1)), later = button("›", "more heads", () => page(1));
      [less.disabled, later.disabled] = [state.page === 0, end === all];
      const rest = it.trace.byHead && it.ranked.filter((h) => !it.shown.includes(h)).reduce((s, h) => s + it.trace.byHead[h], 0);
      pager.replaceChildren(less, make("span", "", `Heads ${first + 1} to ${end} of ${all.toLocaleString("en")}, the ones that matter most here first.${it.trace.byHead ? ` The others add ${number(rest)} to T(x) together.` : ""}`), later);
    }
    // `forwards` lets the numbers come in one after the other.
    function show(forwards) {
      const it = (state.it = study(layer, state.x, state.output, state.page));
      own.forEach((one) => one.show());
      chips.forEach((chip, i) => {
        chip.classList.toggle("done", i < state.step);
        if (i === state.step) chip.setAttribute("aria-current", "step"); else chip.removeAttribute("aria-current");
        chip.replaceChildren(make("b", "", NAMES[i]), miniature(it, i), make("small", "", i <= state.step ? headline(it, i) : ""));
      });
      [back.disabled, next.disabled] = [state.step === 0, state.step === NAMES.length - 1];
      drawPager();
      fill(panel, [state.step], forwards);
      const chip = chips[state.step];
      dot.style.transform = `translate(${chip.offsetLeft + chip.offsetWidth / 2}px, ${chip.offsetTop + chip.offsetHeight}px)`;
    }
    function fill(into, which, forwards) {
      into.replaceChildren(...which.map((i) => {
        const parts = steps[i](state.it), words = parts.filter((part) => part.tagName === "P"), pictures = parts.filter((part) => part.tagName !== "P");
        const title = make("h3", "walk-title", `${i + 1} of ${NAMES.length}: ${NAMES[i]}`);
        return make("div", "walk-step", make("div", "walk-words", title, words.at(-1), words.slice(0, -1)), make("div", "walk-picture", pictures));
      }));
      into.classList.toggle("coming", Boolean(forwards) && !still.matches);
      for (const picture of into.querySelectorAll(".walk-picture")) if (picture.scrollWidth > picture.clientWidth) picture.tabIndex = 0; // it scrolls
      const cells = into.querySelectorAll(".walk-cell, .walk-arrow, .walk-chip, .walk-bar, .walk-answer");
      if (forwards) cells.forEach((one, i) => one.style.setProperty("--after", `${Math.round((1600 * i) / cells.length)}ms`));
    }
    function go(step) {
      const to = Math.max(0, Math.min(NAMES.length - 1, step)), forwards = to > state.step;
      if (to === state.step) return;
      state.step = to;
      show(forwards);
    }
    function pause() {
      clearInterval(state.timer);
      state.timer = null;
      playing.textContent = "Play";
      panel.setAttribute("aria-live", "polite");
    }
    function play() {
      if (still.matches || state.timer) return;
      go(state.step === NAMES.length - 1 ? 0 : state.step + 1);
      playing.textContent = "Pause";
      panel.setAttribute("aria-live", "off"); // it would never stop talking
      state.timer = setInterval(() => { go(state.step + 1); if (state.step === NAMES.length - 1) pause(); }, PAUSE);
    }
    root.addEventListener("keydown", (event) => {
      const typing = event.target.matches("input, select"), pressed = event.target.matches("button");
      const to = { ArrowRight: state.step + 1, ArrowLeft: state.step - 1, Home: 0, End: NAMES.length - 1 }[event.key];
      if (typing || event.altKey || event.ctrlKey || event.metaKey) return;
      if (to !== undefined) { pause(); go(to); } else if (event.key === " " && !pressed) { if (state.timer) pause(); else play(); } else return;
      event.preventDefault();
    });
    const calm = () => { playing.hidden = still.matches; root.classList.toggle("still", still.matches); if (still.matches) pause(); };
    const printing = () => { pause(); pager.hidden = true; fill(panel, NAMES.map((_, i) => i), false); }, printed = () => show(false);
    still.addEventListener("change", calm);
    addEventListener("beforeprint", printing);
    addEventListener("afterprint", printed);
    root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    calm();
    place.replaceChildren(root);
    show(false);
    return (place.walk = {
      layer, go, play, pause, get step() { return state.step; }, get x() { return state.x.slice(); }, get output() { return state.output; },
      moveTo(to, output = state.output) { state.x = Array.from(to); state.output = output; show(false); },
      remove() { pause(); still.removeEventListener("change", calm); removeEventListener("beforeprint", printing); removeEventListener("afterprint", printed); root.remove(); },
    });
  }

  return { mount };
})();
