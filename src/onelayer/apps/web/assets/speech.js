// What a screen reader reads aloud: the last event, after a pause. Otherwise sliders and steps would never stop talking.

const PAUSE = 700; // milliseconds
let later = 0;

export function speak(text) {
  clearTimeout(later);
  later = setTimeout(() => { document.getElementById("spoken").textContent = text; }, PAUSE);
}
