// The page of a study: every figure, drawn at once.

"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const LOOK = { responsive: true, displaylogo: false };
const drawn = Object.entries(DATA.figures).map(([id, figure]) => {
  const place = document.getElementById(id);
  if (place.clientWidth < 560) { // on a phone the legend goes below the picture
    figure.layout.legend = { orientation: "h", y: -0.25 };
    figure.layout.height += 24 * figure.data.length;
  }
  return Plotly.newPlot(place, figure.data, figure.layout, LOOK).then(() => { place.dataset.drawn = "yes"; });
});
Promise.all(drawn).then(() => { document.body.dataset.ready = "yes"; });
