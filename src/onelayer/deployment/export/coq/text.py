"""Numbers, polynomials and matrices as text of Coq; all numbers are exact."""

from collections.abc import Sequence

from ....model.transformer import SingleLayerTransformer
from .exact import Polynomial
from .formula import number


def polynomial(p: Polynomial) -> str:
    """In the normalised inputs u1, u2, … (functions of x1, x2, …)."""
    terms = [" * ".join([number(c), *(f"u{i + 1} x{i + 1}" for i in monomial)]) for monomial, c in sorted(p.items())]
    return f"({' + '.join(terms)})" if terms else "0"


def listed(items: Sequence[str]) -> str:
    return f"[{'; '.join(items)}]"


def _vector(values: Sequence[float]) -> str:
    return listed([number(v) for v in values])


def _matrix(rows: Sequence[Sequence[float]]) -> str:
    return "[" + ";\n    ".join(_vector(row) for row in rows) + "]"


def layer(model: SingleLayerTransformer, place: int, several: bool = False) -> str:
    """The weights of the model, as a record; `several`: one for every output, which share all but the read-out."""
    c = model.config
    w = {name: t.detach().double() for name, t in model.state_dict().items()}
    codes = w["P"].tolist() if "P" in w else [[0.0] * c.d_model] * c.tokens
    special = w["S"].tolist() if "S" in w else []
    heads = {name: _matrix(w[name][..., 0].tolist()) for name in ("W_Q", "W_K", "W_V")}
    read_out, bias, which = _vector(w["W_R"][:, 0].tolist()), number(w["b_R"][0].item()), ""
    if several:
        read_out, bias = f"nth i {_matrix(w['W_R'].T.tolist())} []", f"nth i {_vector(w['b_R'].tolist())} 0"
        which = " (i : nat)"
    return f"""Definition W{which} : layer := {{|
  d_model := {c.d_model}; d_ff := {c.ffn_width}; residual := {str(c.residual).lower()}; read := {c.read_rows.start + place};
  shift := {_vector(w["shift"].flatten().tolist())}; scale := {_vector(w["scale"].flatten().tolist())};
  W_E := {_vector(w["W_E"][0].tolist())}; b_E := {_vector(w["b_E"].tolist())};
  P := {_matrix(codes)};
  S := {_matrix(special)};
  W_Q := {heads["W_Q"]};
  W_K := {heads["W_K"]};
  W_V := {heads["W_V"]};
  W_O := {_matrix(w["W_O"].tolist())};
  W_1 := {_matrix(w["W_1"].tolist())}; b_1 := {_vector(w["b_1"].tolist())};
  W_2 := {_matrix(w["W_2"].tolist())}; b_2 := {_vector(w["b_2"].tolist())};
  W_R := {read_out}; b_R := {bias} |}}.
"""
