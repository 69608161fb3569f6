// Light and dark: the reader's scheme, or the one chosen by the button. Figures take the colours of the page; print is always light.

"use strict";

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let chosenScheme = null; // by the button

function takeScheme(name) {
  document.documentElement.dataset.theme = name;
  const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  if (typeof THEME !== "undefined") THEME = { ink: colour("--ink"), line: colour("--line") };
  const button = document.getElementById("theme");
  button.textContent = name === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Switch to ${name === "dark" ? "light" : "dark"} colours`);
}

const wantedScheme = () => chosenScheme ?? (prefersDark.matches ? "dark" : "light");

// Start with the reader's scheme; `redraw` is called after every change.
function followScheme(redraw) {
  const wanted = wantedScheme;
  const change = () => { takeScheme(wanted()); redraw(); };
  document.getElementById("theme").addEventListener("click", () => { chosenScheme = wanted() === "dark" ? "light" : "dark"; change(); });
  prefersDark.addEventListener("change", change);
  takeScheme(wanted());
}
