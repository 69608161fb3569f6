// What is read aloud: the last thing that happened, once it has been quiet for a while. Sliders and steps would talk without end.

const QUIET = 700; // milliseconds
let later = 0;

export function speak(text) {
  clearTimeout(later);
  later = setTimeout(() => { document.getElementById("spoken").textContent = text; }, QUIET);
}
