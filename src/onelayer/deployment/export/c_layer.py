"""Any layer in C, step by step: embedding, Eq. (5)–(8), FFN, residuals and LayerNorm as configured, read-out."""

import numpy as np

from ...common.errors import InputError
from ...model.config import LayerConfig
from .c_text import MOST_STACK, array
from .c_weights import stored_array
from .subject import Subject

ACTIVATION = {
    "relu": "u > 0 ? u : 0",
    "gelu": "u * (1 + ERF(u * (real)0.70710678118654752440)) / 2",
    "silu": "u / (1 + EXP(-u))",
}


def source(subject: Subject) -> str:
    c = subject.model.config
    held = (2 * c.all_tokens * c.d_model + c.ffn_width + 4 * c.d_model + c.all_tokens * (c.d_k + c.d_v + 1)) * 8
    if held > MOST_STACK:
        raise InputError("a layer that needs at most 4 MB of stack in C", f"{held:,} bytes", "export it as onnx")
    suffix = "f" if subject.arithmetic.name == "float32" else ""
    weights = {name: t.detach().numpy() for name, t in subject.model.state_dict().items()}
    arrays = [stored_array(name, value, suffix, subject.stored) for name, value in weights.items() if value.size]
    arrays.append(array("ROOT", np.sqrt(np.array([c.d_k])), suffix))
    if c.norm != "none":
        arrays.append(array("EPS", np.array([c.norm_eps]), suffix))
    places = ", ".join(map(str, subject.places))
    sizes = {"TOKENS": c.tokens, "FEATURES": c.features_in, "ALL": c.all_tokens, "MODEL": c.d_model, "HEADS": c.heads}
    sizes |= {"D_K": c.d_k, "D_V": c.d_v, "WIDTH": c.ffn_width, "OUT": c.features_out}
    sizes |= {"FIRST": c.read_rows.start, "LAST": c.read_rows.stop - 1, "COUNT": len(subject.places)}
    defines = "".join(f"#define {name} {value}\n" for name, value in sizes.items())
    table = f"static const int PLACES[COUNT] = {{{places}}};\n" if c.readout != "mean" else ""
    norm = NORM if c.norm != "none" else ""
    return "\n".join([defines, table, *arrays, _embed(c, subject), norm, _attend(c), _feed(c), _answer(c)])


def _embed(c: LayerConfig, subject: Subject) -> str:
    number = "x[t * FEATURES + f]" if subject.approximation.vocabulary is None else "(x[t] == (real)f ? 1 : 0)"
    code = "" if c.code == "none" else " + P[t * MODEL + i]"
    special = SPECIAL if c.special_tokens else ""
    return f"""/* the tokens: z W_E + b_E + code, z = (x - shift)*scale, and the special tokens */
static void embed(const real *x, real e[ALL][MODEL])
{{
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < MODEL; i++) {{
            real sum = 0;
            for (int f = 0; f < FEATURES; f++)
                sum += ({number} - shift[t * FEATURES + f]) * scale[t * FEATURES + f] * W_E[f * MODEL + i];
            e[t][i] = sum + b_E[i]{code};
        }}{special}
}}
"""


SPECIAL = """
    for (int t = TOKENS; t < ALL; t++)
        for (int i = 0; i < MODEL; i++)
            e[t][i] = S[(t - TOKENS) * MODEL + i];"""
NORM = """/* (x - mean)/sqrt(variance + eps)*gain + offset */
static void norm(const real *x, const real *gain, const real *offset, real *y)
{
    real mean = 0, variance = 0;
    for (int i = 0; i < MODEL; i++)
        mean += x[i] / MODEL;
    for (int i = 0; i < MODEL; i++)
        variance += (x[i] - mean) * (x[i] - mean) / MODEL;
    const real root = SQRT(variance + EPS[0]);
    for (int i = 0; i < MODEL; i++)
        y[i] = (x[i] - mean) / root * gain[i] + offset[i];
}
"""


def _attend(c: LayerConfig) -> str:
    widths = {"Q": "D_K", "K": "D_K", "V": "D_V"}
    biases = {k: f"b_{k}[h * {width} + i]" if c.projection_bias else "0" for k, width in widths.items()}
    start = "b_O[i]" if c.projection_bias else "0"
    return f"""/* a[row] = sum over heads of softmax(q.k/sqrt(d_k)) v W_O; equations (5) to (8) */
static void attend(real e[ALL][MODEL], real a[ALL][MODEL])
{{
    for (int r = FIRST; r <= LAST; r++)
        for (int i = 0; i < MODEL; i++)
            a[r][i] = {start};
    for (int h = 0; h < HEADS; h++) {{
        real k[ALL][D_K], v[ALL][D_V];
        for (int t = 0; t < ALL; t++) {{
            for (int i = 0; i < D_K; i++) {{
                k[t][i] = {biases["K"]};
                for (int j = 0; j < MODEL; j++)
                    k[t][i] += e[t][j] * W_K[(h * MODEL + j) * D_K + i];
            }}
            for (int i = 0; i < D_V; i++) {{
                v[t][i] = {biases["V"]};
                for (int j = 0; j < MODEL; j++)
                    v[t][i] += e[t][j] * W_V[(h * MODEL + j) * D_V + i];
            }}
        }}
        for (int r = FIRST; r <= LAST; r++) {{
            real q[D_K], s[ALL], mean[D_V] = {{0}}, total = 0, top = 0;
            for (int i = 0; i < D_K; i++) {{
                q[i] = {biases["Q"]};
                for (int j = 0; j < MODEL; j++)
                    q[i] += e[r][j] * W_Q[(h * MODEL + j) * D_K + i];
            }}
            for (int t = 0; t < ALL; t++) {{
                s[t] = 0;
                for (int i = 0; i < D_K; i++)
                    s[t] += q[i] * k[t][i];
                s[t] /= ROOT[0];
                if (t == 0 || s[t] > top)
                    top = s[t];
            }}
            for (int t = 0; t < ALL; t++) {{
                const real weight = EXP(s[t] - top);
                total += weight;
                for (int i = 0; i < D_V; i++)
                    mean[i] += weight * v[t][i];
            }}
            for (int i = 0; i < D_V; i++)
                for (int j = 0; j < MODEL; j++)
                    a[r][j] += mean[i] / total * W_O[(h * D_V + i) * MODEL + j];
        }}
    }}
}}
"""


def _feed(c: LayerConfig) -> str:
    return f"""/* f = activation(h W_1 + b_1) W_2 + b_2 */
static void feed_forward(const real *h, real *f)
{{
    for (int j = 0; j < MODEL; j++)
        f[j] = b_2[j];
    for (int i = 0; i < WIDTH; i++) {{
        real u = b_1[i];
        for (int j = 0; j < MODEL; j++)
            u += h[j] * W_1[j * WIDTH + i];
        u = {ACTIVATION[c.activation]};
        for (int j = 0; j < MODEL; j++)
            f[j] += u * W_2[i * MODEL + j];
    }}
}}
"""


def _answer(c: LayerConfig) -> str:
    """One point: the sublayers at every row that is read, then the read-out of each row or of their mean."""
    pre, post = c.norm == "pre", c.norm == "post"
    steps, rows = ["real e[ALL][MODEL], a[ALL][MODEL], f[MODEL];", "embed(x, e);"], []
    if pre:
        steps += ["real n[ALL][MODEL];", "for (int t = 0; t < ALL; t++)", "    norm(e[t], gain_1, offset_1, n[t]);"]
    steps.append(f"attend({'n' if pre else 'e'}, a);")
    if c.residual:
        rows += ["for (int i = 0; i < MODEL; i++)", "    a[r][i] += e[r][i];"]
    if post:
        rows.append("norm(a[r], gain_1, offset_1, a[r]);")
    if pre:
        rows += ["real seen[MODEL];", "norm(a[r], gain_2, offset_2, seen);"]
    rows.append(f"feed_forward({'seen' if pre else 'a[r]'}, f);")
    rows += ["for (int i = 0; i < MODEL; i++)", f"    a[r][i] = {'a[r][i] + f[i]' if c.residual else 'f[i]'};"]
    if post:
        rows.append("norm(a[r], gain_2, offset_2, a[r]);")
    steps += ["for (int r = FIRST; r <= LAST; r++) {", *("    " + row for row in rows), "}"]
    row = "FIRST + PLACES[p]"
    if c.readout == "mean":
        row = "FIRST"
        steps += ["for (int i = 0; i < MODEL; i++) {", "    real sum = 0;", "    for (int r = FIRST; r <= LAST; r++)"]
        steps += ["        sum += a[r][i];", "    a[FIRST][i] = sum / (LAST - FIRST + 1);", "}"]
    steps += ["for (int p = 0; p < COUNT; p++)", "    for (int o = 0; o < OUT; o++) {", "        real sum = 0;"]
    steps += ["        for (int i = 0; i < MODEL; i++)", f"            sum += a[{row}][i] * W_R[i * OUT + o];"]
    steps += ["        y[p * OUT + o] = sum + b_R[o];", "    }"]
    body = "\n".join("    " + step for step in steps)
    return f"void onelayer(const real *x, real *y)\n{{\n{body}\n}}\n"
