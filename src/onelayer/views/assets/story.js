// The story: start all steps, open definitions in place, and mark the step that is on the screen.

"use strict";

// A word with a definition: its button opens the definition behind it, and Escape closes it.
function openWords() {
  const meanings = Object.fromEntries([...document.querySelectorAll("#words dt")].map((dt) => [dt.id.slice(5), dt.nextElementSibling.innerHTML]));
  document.querySelectorAll("button.term").forEach((button, k) => {
    const meaning = document.createElement("span");
    meaning.className = "meaning";
    meaning.id = `meaning-${k}`;
    meaning.hidden = true;
    meaning.innerHTML = meanings[button.dataset.word];
    button.after(meaning);
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-controls", meaning.id);
    const set = (open) => { meaning.hidden = !open; button.setAttribute("aria-expanded", open); };
    button.addEventListener("click", () => set(meaning.hidden));
    button.addEventListener("keydown", (event) => { if (event.key === "Escape") set(false); });
  });
}

function markStep() {
  const links = new Map([...document.querySelectorAll("nav.steps a")].map((a) => [a.hash.slice(1), a]));
  const watcher = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach(({ target }) => {
    links.forEach((a, id) => (id === target.id ? a.setAttribute("aria-current", "step") : a.removeAttribute("aria-current")));
  }), { rootMargin: "-45% 0px -50% 0px" });
  document.querySelectorAll("section.step").forEach((section) => watcher.observe(section));
}

const LIMITS = { jump: stepJump, outside: stepOutside, twice: stepTwice };
function chooseLimit() {
  const shown = new Set();
  const show = (name) => {
    for (const other of Object.keys(LIMITS)) byId(`limit-${other}`).hidden = other !== name;
    if (!shown.has(name)) LIMITS[name]();
    shown.add(name);
  };
  choice("limits", show);
  show("jump");
}

// The first step at once, the others when they come near: the page opens quickly.
function startSteps(steps) {
  const start = (section) => { steps[section.id](); section.dataset.started = "yes"; };
  const watcher = new IntersectionObserver((entries, own) => entries.filter((e) => e.isIntersecting).forEach(({ target }) => {
    own.unobserve(target);
    start(target);
  }), { rootMargin: "900px" });
  const [first, ...others] = document.querySelectorAll("section.step");
  start(first);
  others.forEach((section) => watcher.observe(section));
}

followScheme(() => {});
openWords();
markStep();
startSteps({ gate: stepGate, stairs: stepStairs, finer: stepFiner, solved: stepSolved, polished: stepPolished, boxes: stepBoxes, cannot: chooseLimit });
document.body.dataset.ready = "yes";
