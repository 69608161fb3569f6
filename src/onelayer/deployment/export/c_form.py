"""A constructed layer in C: bias + x̂·linear + Σ of softmax averages + hinges, as `layer/reading` finds it in the weights.

Masked tokens are left out, and a head is a few numbers. The sum is evaluated as in `attention/averages`, and
`layer/rounding/deployed` bounds its rounding for sums in any order: both our own layer and the file are within R of the real
function, and so within 2R of each other.
"""

import numpy as np

from ...common.errors import InputError
from ...common.outward import UP
from ...layer.form import Block
from ...layer.reading import Reading
from ...layer.rounding.computed_slopes import gradient_rounding
from ...proof.slopes import slopes_of_reading
from .c_text import MOST_STACK
from .c_weights import stored_array
from .program_distance import distance
from .subject import Bound, Subject


def rounding(subject: Subject, reading: Reading) -> Bound | None:
    """2R, where R covers both evaluations: the weights of our own layer, no hinges, values with at most one slope."""
    form = reading.form
    if any(int(block.slopes.ne(0).sum(dim=2).max()) > 1 for block in form.blocks):
        return None
    return distance(subject, reading, subject.arithmetic, terms=form.heads + form.dimension + 1)  # of the file too


def source(subject: Subject, reading: Reading) -> str:
    suffix = "f" if subject.arithmetic.name == "float32" else ""
    form, frame = reading.form, reading.frame
    arrays = [("SHIFT", np.array(frame.shift)), ("SCALE", np.array(frame.scale)), ("BIAS", form.bias.numpy())]
    lines = ["for (int i = 0; i < INPUTS; i++)", "    z[i] = (x[i] - SHIFT[i]) * SCALE[i];"]
    lines += ["for (int o = 0; o < OUTPUTS; o++)", "    y[o] = BIAS[o];"]
    if form.linear.any():
        arrays.append(("LINEAR", form.linear.numpy()))
        lines += ["for (int i = 0; i < INPUTS; i++)", "    for (int o = 0; o < OUTPUTS; o++)"]
        lines += ["        y[o] += z[i] * LINEAR[i * OUTPUTS + o];"]
    functions = []
    for i, block in enumerate(form.blocks):
        if block.biases.shape[1] * 8 * (1 + len(form.bias)) > MOST_STACK:
            found = f"a head of {block.biases.shape[1]:,} tokens"
            raise InputError("a layer that needs at most 4 MB of stack in C", found, "export it as onnx")
        arrays += _numbers(i, block)
        functions.append(_average(i, block))
        lines.append(f"average_{i}(z, y);")
    if len(reading.hinges):
        arrays += [("DIRECTIONS", reading.hinges.directions.numpy()), ("OFFSETS", reading.hinges.offsets.numpy())]
        arrays.append(("HINGES", reading.hinge_values.numpy()))
        functions.append(HINGES % len(reading.hinges))
        lines.append("hinges(z, y);")
    body = "\n".join("    " + line for line in ["real z[INPUTS];", *lines])
    main = "/* bias + z.linear + sums of softmax averages, z = (x - shift)*scale */\n"
    main += f"void onelayer(const real *x, real *y)\n{{\n{body}\n}}\n"
    numbers = (stored_array(name, values, suffix, subject.stored) for name, values in arrays)
    return "\n".join([*numbers, *functions, main])


def slope_error(subject: Subject, reading: Reading) -> float | None:
    """How far an entry of `onelayer_gradient` can be from the slope of the real layer; None if nothing is proved."""
    if not subject.same or len(reading.hinges):
        return None
    _, error = slopes_of_reading(reading)
    rounding = gradient_rounding(reading.form, reading.frame.scale, reading.edge, subject.arithmetic)
    found = (float(rounding.max()) + float(error.max())) * UP
    return found if np.isfinite(found) else None


def gradient_source(reading: Reading) -> str:
    """The slopes, with the arrays of `source`; they are continuous only without hinges."""
    lines = ["real z[INPUTS];", "for (int i = 0; i < INPUTS; i++)", "    z[i] = (x[i] - SHIFT[i]) * SCALE[i];"]
    start = "LINEAR[i * OUTPUTS + o]" if reading.form.linear.any() else "0"
    lines += ["for (int o = 0; o < OUTPUTS; o++)", "    for (int i = 0; i < INPUTS; i++)"]
    lines += [f"        dy[o * INPUTS + i] = {start};"]
    lines += [f"slopes_{i}(z, dy);" for i in range(len(reading.form.blocks))]
    lines += ["for (int o = 0; o < OUTPUTS; o++)", "    for (int i = 0; i < INPUTS; i++)"]
    lines += ["        dy[o * INPUTS + i] *= SCALE[i];"]
    body = "\n".join("    " + line for line in lines)
    main = "/* dy[o * INPUTS + i]: the slope of output o along x[i] */\n"
    main += f"void onelayer_gradient(const real *x, real *dy)\n{{\n{body}\n}}\n"
    return "\n".join([*(_slopes(i, block) for i, block in enumerate(reading.form.blocks)), main])


def _slopes(i: int, block: Block) -> str:
    """Per head: Σ_t w_t [(v_t − m) k_t + u_t], m the average of the values v_t, u_t their slopes."""
    heads, tokens = block.biases.shape
    at = f"(h * {tokens} + t)"
    slope = f"SLOPES_{i}[({at} * INPUTS + j) * OUTPUTS + o]"
    moves = bool(block.slopes.any())
    move = (
        f"\n                for (int j = 0; j < INPUTS; j++)\n                    v[t][o] += z[j] * {slope};"
        if moves
        else ""
    )
    more = f" + {slope}" if moves else ""
    return f"""/* the slopes of {heads} head(s) of {tokens} tokens, with respect to z */
static void slopes_{i}(const real *z, real *dy)
{{
    for (int h = 0; h < {heads}; h++) {{
        real w[{tokens}], v[{tokens}][OUTPUTS], mean[OUTPUTS] = {{0}}, total = 0, top = 0;
        for (int t = 0; t < {tokens}; t++) {{
            w[t] = BIASES_{i}[{at.strip("()")}];
            for (int j = 0; j < INPUTS; j++)
                w[t] += KEYS_{i}[{at} * INPUTS + j] * z[j];
            if (t == 0 || w[t] > top)
                top = w[t];
        }}
        for (int t = 0; t < {tokens}; t++) {{
            w[t] = EXP(w[t] - top);
            total += w[t];
            for (int o = 0; o < OUTPUTS; o++) {{
                v[t][o] = VALUES_{i}[{at} * OUTPUTS + o];{move}
                mean[o] += w[t] * v[t][o];
            }}
        }}
        for (int o = 0; o < OUTPUTS; o++)
            for (int j = 0; j < INPUTS; j++) {{
                real sum = 0;
                for (int t = 0; t < {tokens}; t++)
                    sum += w[t] * ((v[t][o] - mean[o] / total) * KEYS_{i}[{at} * INPUTS + j]{more});
                dy[o * INPUTS + j] += sum / total;
            }}
    }}
}}
"""


def _numbers(i: int, block: Block) -> list[tuple[str, np.ndarray]]:
    found = [(f"KEYS_{i}", block.keys), (f"BIASES_{i}", block.biases), (f"VALUES_{i}", block.values)]
    found += [(f"SLOPES_{i}", block.slopes)] if block.slopes.any() else []
    return [(name, t.numpy()) for name, t in found]


def _average(i: int, block: Block) -> str:
    """Heads with the same number of tokens; values are constants, or affine in z."""
    heads, tokens = block.biases.shape
    value = f"VALUES_{i}[(h * {tokens} + t) * OUTPUTS + o]"
    move = ""
    if block.slopes.any():
        slope = f"SLOPES_{i}[((h * {tokens} + t) * INPUTS + j) * OUTPUTS + o]"
        move = f"\n                for (int j = 0; j < INPUTS; j++)\n                    v += z[j] * {slope};"
    return f"""/* {heads} head(s) of {tokens} tokens: values averaged with softmax(keys.z + biases) as weights */
static void average_{i}(const real *z, real *y)
{{
    for (int h = 0; h < {heads}; h++) {{
        real s[{tokens}], mean[OUTPUTS] = {{0}}, total = 0, top = 0;
        for (int t = 0; t < {tokens}; t++) {{
            s[t] = BIASES_{i}[h * {tokens} + t];
            for (int j = 0; j < INPUTS; j++)
                s[t] += KEYS_{i}[(h * {tokens} + t) * INPUTS + j] * z[j];
            if (t == 0 || s[t] > top)
                top = s[t];
        }}
        for (int t = 0; t < {tokens}; t++) {{
            const real weight = EXP(s[t] - top);
            total += weight;
            for (int o = 0; o < OUTPUTS; o++) {{
                real v = {value};{move}
                mean[o] += weight * v;
            }}
        }}
        for (int o = 0; o < OUTPUTS; o++)
            y[o] += mean[o] / total;
    }}
}}
"""


HINGES = """/* units max(0, direction.z + offset) */
static void hinges(const real *z, real *y)
{
    for (int h = 0; h < %d; h++) {
        real u = OFFSETS[h];
        for (int j = 0; j < INPUTS; j++)
            u += DIRECTIONS[h * INPUTS + j] * z[j];
        if (u > 0)
            for (int o = 0; o < OUTPUTS; o++)
                y[o] += u * HINGES[h * OUTPUTS + o];
    }
}
"""
