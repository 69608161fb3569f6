// Every page: all data is in it and nothing is requested. Its colours follow the reader; it prints whole, and light.

"use strict";

const PAGE = JSON.parse(document.getElementById("data").textContent);

function startWalk() {
  const place = document.getElementById("walk-place");
  const walk = Walk.mount(place, DATA.layer, currentPoint(), { onMove: (x, output) => {
    document.querySelectorAll("#movable input[type=range]").forEach((input) => { input.value = x[Number(input.dataset.variable)]; });
    const select = document.querySelector("#movable select");
    if (select) select.value = output;
    soon("point", movePoint);
  } });
  document.addEventListener("moved", ({ detail: { x, output } }) => { if (x.some((v, j) => v !== walk.x[j]) || output !== walk.output) walk.moveTo(x, output); });
}

let closed = [];
addEventListener("beforeprint", () => {
  takeScheme("light");
  recolour();
  drawRest();
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => {
  closed.forEach((one) => { one.open = false; });
  takeScheme(wantedScheme());
  recolour();
});

followScheme(recolour);
if (PAGE.sequence) showSequence(PAGE.sequence);
if (PAGE.sequence?.language) showTyping();
show(PAGE).then(() => {
  if (document.getElementById("walk-place")) startWalk();
  document.body.dataset.ready = "yes";
});
