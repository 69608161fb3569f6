// Light and dark: the page, its button, and the colours of figures.

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
  const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  THEME = { ink: colour("--ink"), line: colour("--line") };
}

// Start with the visitor's scheme; `redraw` is called after every change.
export function listenToTheme(redraw) {
  document.getElementById("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    redraw();
  });
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
