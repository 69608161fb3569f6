// Small pictures on a canvas: a surface seen from the side, and a table of shares. Only numbers go in.

"use strict";

const RAMP = [[68, 1, 84], [59, 82, 139], [33, 144, 140], [93, 200, 99], [253, 231, 37]]; // viridis, by five of its colours

function rampColour(share) {
  const s = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), k = Math.min(Math.floor(s), RAMP.length - 2), t = s - k;
  return `rgb(${RAMP[k].map((c, i) => Math.round(c * (1 - t) + RAMP[k + 1][i] * t)).join(",")})`;
}

// A canvas as wide as the page shows it, in the device's own pixels.
function penOf(canvas) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(canvas.clientHeight * scale);
  return canvas.getContext("2d");
}

// Corners of a side × side grid over the unit square, turned by an angle and seen from above: how far across, up and away.
function projectedGrid(z, side, angle) {
  const low = z.reduce((a, b) => Math.min(a, b)), high = z.reduce((a, b) => Math.max(a, b)), size = high - low || 1;
  return z.map((v, k) => {
    const x = (k % side) / (side - 1) - 0.5, y = Math.floor(k / side) / (side - 1) - 0.5, h = (v - low) / size;
    const across = x * Math.cos(angle) - y * Math.sin(angle), depth = x * Math.sin(angle) + y * Math.cos(angle);
    return { across, up: 0.6 * h + 0.5 * depth, depth, share: h };
  });
}

// The surface z on that grid; what is far is drawn first.
function drawSurface(canvas, z, side, angle) {
  const pen = penOf(canvas), points = projectedGrid(z, side, angle), w = canvas.width, h = canvas.height, quads = [];
  const fit = (name, size) => {
    const low = Math.min(...points.map((p) => p[name])), high = Math.max(...points.map((p) => p[name]));
    return (v) => size * (0.03 + (0.94 * (v - low)) / (high - low));
  };
  const across = fit("across", w), up = fit("up", h);
  for (let j = 0; j + 1 < side; j++) for (let i = 0; i + 1 < side; i++) {
    const corners = [j * side + i, j * side + i + 1, (j + 1) * side + i + 1, (j + 1) * side + i].map((k) => points[k]);
    quads.push({ corners, depth: corners.reduce((s, p) => s + p.depth, 0), share: corners.reduce((s, p) => s + p.share, 0) / 4 });
  }
  pen.clearRect(0, 0, w, h);
  for (const quad of quads.sort((a, b) => b.depth - a.depth)) {
    pen.beginPath();
    quad.corners.forEach((p, k) => pen[k ? "lineTo" : "moveTo"](across(p.across), h - up(p.up)));
    pen.closePath();
    pen.fillStyle = pen.strokeStyle = rampColour(quad.share);
    pen.fill();
    pen.stroke();
  }
}

// Rows of shares between 0 and 1, as squares.
function drawShares(canvas, rows) {
  const pen = penOf(canvas), size = Math.min(canvas.width / rows[0].length, canvas.height / rows.length) * 0.95;
  const left = (canvas.width - size * rows[0].length) / 2, top = (canvas.height - size * rows.length) / 2;
  rows.forEach((row, j) => row.forEach((share, i) => {
    pen.fillStyle = rampColour(share * 1.6);
    pen.fillRect(left + i * size, top + j * size, size * 0.94, size * 0.94);
  }));
}
