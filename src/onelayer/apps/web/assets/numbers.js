// Proved numbers as text, rounded so that the text claims no more than the number.

const DIGITS = 4, SLACK = 1e-3; // share of a step: more than the error of a quotient of two floats
const powerOf = (v, digits) => (v > 0 && Number.isFinite(v) ? Math.floor(Math.log10(v)) + 1 - digits : 0);
const text = (count, power) => (count * 10 ** power).toFixed(Math.min(100, Math.max(0, -power)));

// A number above 0 to a few digits, rounded up or down: its decimal digits are all there, and the others are cut off.
function rounded(v, up) {
  const [figures, power] = v.toExponential(100).replace(".", "").split("e"), more = up && /[1-9]/.test(figures.slice(DIGITS));
  const found = Number(`${Number(figures.slice(0, DIGITS)) + (more ? 1 : 0)}e${Number(power) + 1 - DIGITS}`);
  return found < 1e-4 ? found.toExponential() : String(found);
}

// An upper bound, rounded up.
export function atMost(v) {
  if (v === 0) return "0";
  return v > 0 && v < Infinity ? rounded(v, true) : "∞"; // not a number: nothing is known
}

// An observed error, rounded down: the largest error is at least that.
export const atLeast = (v) => (v > 0 && v < Infinity ? rounded(v, false) : String(v));

// A number that claims nothing, to a few digits.
export const about = (v) => v.toPrecision(DIGITS);

// [low, high] rounded outwards, to three digits of the width, or twelve of the numbers: further ones are rounding.
export function between(low, high) {
  const power = Math.max(powerOf(high - low, 3), powerOf(Math.max(-low, high), 12)), step = 10 ** power;
  return [text(Math.floor(low / step - SLACK), power), text(Math.ceil(high / step + SLACK), power)];
}

// [low, high] rounded inwards, to five digits of the width, or with all digits where that is too narrow.
export function inside(low, high) {
  const power = powerOf(high - low, 5), step = 10 ** power;
  const end = (v, inward) => {
    const near = Number(text(Math.round(v / step), power));
    return near === v ? near : Number(text(inward(v / step), power));
  };
  const [a, b] = [end(low, Math.ceil), end(high, Math.floor)];
  return (low <= a && a < b && b <= high ? [a, b] : [low, high]).map(String);
}
