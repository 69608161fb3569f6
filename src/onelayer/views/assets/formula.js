// The target at a point, from the steps of its formula (views/formula_record.py): double precision, nothing proved.

"use strict";

const exprel = (u) => (Math.abs(u) < 1e-5 ? 1 + u / 2 + (u * u) / 6 : Math.expm1(u) / u);
const FORMULA = {
  sum: (...terms) => terms.reduce((a, b) => a + b), product: (...factors) => factors.reduce((a, b) => a * b),
  negation: (a) => -a, quotient: (a, b) => a / b, power: (a, b) => a ** b,
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
  and: (...parts) => parts.every(Boolean), or: (...parts) => parts.some(Boolean), not: (a) => !a, where: (c, a, b) => (c ? a : b),
  sin: Math.sin, cos: Math.cos, tan: Math.tan, exp: Math.exp, log: Math.log, sqrt: Math.sqrt, tanh: Math.tanh, sinh: Math.sinh,
  cosh: Math.cosh, atan: Math.atan, asin: Math.asin, acos: Math.acos, expm1: Math.expm1, log1p: Math.log1p, cbrt: Math.cbrt,
  asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh, floor: Math.floor,
  abs: Math.abs, min: Math.min, max: Math.max, sqr: (a) => a * a, erf, exprel, sigmoid: (a) => 1 / (1 + Math.exp(-a)),
  softplus: (a) => Math.max(a, 0) + Math.log1p(Math.exp(-Math.abs(a))), sinc: (a) => (a === 0 ? 1 : Math.sin(a) / a),
  atan2: (a, b) => (a === 0 && b === 0 ? NaN : Math.atan2(a + 0, b + 0)),
};

// f(x) at one output, or null where the page does not know it: f is not a formula, or it has no value there.
function targetAt(target, x, output) {
  if (!target) return null;
  const values = [];
  for (const [name, ...places] of target.steps) {
    if (name === "number") values.push(places[0]);
    else if (name === "variable") values.push(x[places[0]]);
    else values.push(FORMULA[name](...places.map((place) => values[place])));
  }
  const value = values[target.outputs[output]];
  return Number.isFinite(value) ? value : null;
}
