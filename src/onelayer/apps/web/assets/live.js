// Live building: a pause in typing or a step of ε starts a build, and the last request wins.
// A coarse layer comes at once when the function is new; the proved one replaces it.

import { parse, request } from "./form.js";
import { setBoxes } from "./point.js";
import { speak } from "./speech.js";
import { busy, outdate, settle, showError, stage } from "./state.js";
import { events, Refusal } from "./stream.js";

const PAUSE = 40; // milliseconds without a key press before a build
const PATIENCE = 700; // milliseconds that a build may go on after ε has moved away
const TAB = crypto.randomUUID?.() ?? String(Math.random()); // missing on unencrypted addresses
let running = null, waiting = 0, pressed = 0, behind = false, asleep = false, view = null; // asleep: cancelled by hand

// `display({found, asked, coarse, started, x})` draws a layer, `offer(key)` its folder.
export function connect(own) { view = own; }

const alike = (a, b, names) => names.every((name) => a?.[name] === b?.[name]);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// After a key press: what is drawn is out of date, unless the form asks for it again.
export function typed() {
  pressed = performance.now();
  running?.abort();
  stage("");
  showError(null);
  if (view.shown && !view.shown.coarse && same(request(), view.shown.asked)) settle(); else outdate();
  clearTimeout(waiting);
  waiting = setTimeout(check, PAUSE);
}

async function check() {
  const good = await parse();
  if (good === null) return; // another key press was faster
  if (!good) outdate(true);
  else if (document.body.dataset.state !== "current") build({ pressed });
}

// While ε is dragged, one build follows the other, each with the latest ε; a slow one is given up.
export function dragged() {
  pressed = performance.now();
  clearTimeout(waiting);
  outdate();
  if (running && performance.now() - running.since < PATIENCE) behind = true; else build({ pressed });
}

// At once, whatever was typed before; what is wrong with it is told.
export function now() {
  clearTimeout(waiting);
  parse();
  build({ pressed: performance.now() });
}

export async function build({ pressed: started, x = null, path = "/api/build" }) {
  const asked = request(), known = alike(asked, view.shown?.asked, ["formula", "domain"]);
  if (running) running.abort();
  const own = (running = new AbortController());
  let found = null, boxes = null;
  own.since = performance.now();
  behind = asleep = false;
  busy(true);
  showError(null);
  outdate();
  try {
    const body = path === "/api/build" ? { ...asked, coarse: !known, tab: TAB } : undefined;
    for await (const event of events(path, body, own.signal)) {
      if (event.event === "queued") stage(`waiting: place ${event.position} in the queue`);
      if (event.event === "progress") stage(event.stage, event.share);
      if (event.event === "error") throw new Refusal(event);
      if (event.event === "replaced") return;
      if (event.event === "coarse") await view.display({ found: event, asked, coarse: true, started, x });
      if (event.event === "result") await view.display({ found: (found = event), asked, coarse: false, started, x });
      if (event.event === "folder") view.offer(event.key);
      if (event.event === "covering") boxes = event.covering;
      if (found && behind) break;
    }
    stage("");
  } catch (error) {
    if (running === own) handle(error, found);
  } finally {
    if (found) setBoxes(found, boxes);
    if (running === own) {
      running = null;
      own.abort(); // the rest of a stream that is not wanted any more
      busy(false);
      if (behind) build({ pressed });
    }
  }
}

function handle(error, found) {
  const cancelled = error.name === "AbortError";
  stage(cancelled && asleep ? "cancelled" : "");
  if (!found && view.shown?.coarse && same(request(), view.shown.asked)) settle(); // it stays, not proved
  else if (!found) outdate(!cancelled || asleep);
  if (cancelled && asleep) speak("cancelled");
  else if (cancelled) return;
  else if (error instanceof Refusal) showError(error);
  else throw error;
}

export function cancel() {
  clearTimeout(waiting);
  behind = false;
  asleep = true;
  running?.abort();
}
