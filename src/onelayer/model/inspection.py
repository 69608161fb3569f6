"""The linear algebra of a layer (Section II.A): ranks, spectra and norms of its weights, and every head's circuits.

A head acts on the embedded tokens only through two d_model × d_model matrices:

    QK circuit  W^Q (W^K)ᵀ   which tokens it attends to (the scores are e_i W^Q (W^K)ᵀ e_jᵀ/√d_k, biases aside)
    OV circuit  W^V W^O      what it writes when it attends there

Both have rank at most d_k or d_v, so their singular values and eigenvalues are computed from small factors.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ..common.checks import known_options
from ..common.errors import InputError
from ..common.table import Table
from .transformer import SingleLayerTransformer

MATRICES = {  # weight → what it does; the per-head stacks are seen as one matrix, all heads side by side
    "W_E": "embedding",
    "P": "positional codes",
    "S": "special tokens",
    "W_Q": "queries, all heads",
    "W_K": "keys, all heads",
    "W_V": "values, all heads",
    "W_O": "output of the heads",
    "W_1": "feed-forward in",
    "W_2": "feed-forward out",
    "W_R": "read-out",
}


@dataclass(frozen=True, eq=False)
class MatrixView:
    """One weight matrix: shape, numerical rank, spectrum, norms. `eigenvalues` is None unless the matrix is square."""

    name: str
    role: str
    shape: tuple[int, int]
    rank: int
    singular_values: Float[np.ndarray, " s"]
    eigenvalues: Complex[np.ndarray, " m"] | None
    frobenius: float
    largest: float  # max |entry|

    @property
    def spectral(self) -> float:
        """The spectral norm, the largest singular value."""
        return float(self.singular_values[0])

    @property
    def condition(self) -> float:
        """Largest over smallest singular value; infinite when the smallest is 0."""
        smallest = float(self.singular_values[-1])
        return self.spectral / smallest if smallest else math.inf


@dataclass(frozen=True, eq=False)
class Circuits:
    """One kind of circuit (QK or OV) of all heads: the spectra that can be non-zero, and numerical ranks."""

    name: str
    formula: str
    singular_values: Float[np.ndarray, "head s"]
    eigenvalues: Complex[np.ndarray, "head s"]
    rank: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Inspection:
    """What `inspect` found; prints as two tables."""

    matrices: tuple[MatrixView, ...]
    qk: Circuits
    ov: Circuits
    heads: int

    def __getitem__(self, name: str) -> MatrixView:
        for view in self.matrices:
            if view.name == name:
                return view
        raise KeyError(name)

    def matrix_table(self) -> Table:
        columns = (
            "matrix",
            "role",
            "shape",
            "rank",
            "σ max",
            "σ min",
            "condition",
            "Frobenius",
            "max |entry|",
            "|λ| max",
        )
        table = Table("Weight matrices", columns)
        for v in self.matrices:
            radius = "" if v.eigenvalues is None else float(abs(v.eigenvalues).max())
            shape = f"{v.shape[0]}×{v.shape[1]}"
            sigma = (v.spectral, float(v.singular_values[-1]))
            table.rows.append((v.name, v.role, shape, v.rank, *sigma, v.condition, v.frobenius, v.largest, radius))
        return table

    def head_table(self, most: int = 12) -> Table:
        """The circuits of the first `most` heads."""
        shown = min(most, self.heads)
        heads = f"Heads 1–{shown}" if shown > 1 else "Head 1"
        title = f"{heads} of {self.heads}: QK circuit {self.qk.formula}, OV circuit {self.ov.formula}"
        table = Table(title, ("head", "QK rank", "QK σ", "QK λ", "OV rank", "OV σ", "OV λ"))
        for i in range(shown):
            cells = [(c.rank[i], _few(c.singular_values[i]), _few(c.eigenvalues[i])) for c in (self.qk, self.ov)]
            table.rows.append((i + 1, *cells[0], *cells[1]))
        return table

    def __str__(self) -> str:
        return f"{self.matrix_table()}\n{self.head_table()}"

    def _repr_html_(self) -> str:
        return self.matrix_table()._repr_html_() + self.head_table()._repr_html_()


@known_options
def inspect(model: SingleLayerTransformer) -> Inspection:
    """Ranks, spectra and norms of every weight matrix, and the QK and OV circuits of every head."""
    if not isinstance(model, SingleLayerTransformer):
        raise InputError("a SingleLayerTransformer to inspect", type(model).__name__, "pass the model itself")
    state = {name: t.detach().to("cpu", torch.float64) for name, t in model.state_dict().items()}
    for name, t in state.items():
        if not t.isfinite().all():
            raise InputError("finite weights", f"{name} has a NaN or infinite entry", "repair the weights first")
    heads, d_v = model.config.heads, model.config.d_v
    eps = torch.finfo(model.W_E.dtype).eps
    W_O = state["W_O"].reshape(heads, d_v, -1)
    return Inspection(
        matrices=tuple(_matrix(name, role, state[name], eps) for name, role in MATRICES.items() if name in state),
        qk=_circuits("QK", "W^Q (W^K)ᵀ", state["W_Q"], state["W_K"].transpose(1, 2), eps),
        ov=_circuits("OV", "W^V W^O", state["W_V"], W_O, eps),
        heads=heads,
    )


def _matrix(name: str, role: str, t: Tensor, eps: float) -> MatrixView:
    m = (t.transpose(0, 1).flatten(1) if t.ndim == 3 else t).numpy()
    sigma = np.linalg.svd(m, compute_uv=False)
    square = m.shape[0] == m.shape[1]
    return MatrixView(
        name=name,
        role=role,
        shape=m.shape,
        rank=int(_rank(sigma, m.shape, eps)),
        singular_values=_fixed(sigma),
        eigenvalues=_fixed(_by_size(np.linalg.eigvals(m).astype(complex))) if square else None,
        frobenius=math.hypot(*sigma),
        largest=float(abs(m).max()),
    )


def _circuits(
    name: str,
    formula: str,
    left: Float[Tensor, "head model width"],
    right: Float[Tensor, "head width model"],
    eps: float,
) -> Circuits:
    """Spectra of left·right: σ from the triangular factors, σ(R_1 R_2ᵀ); λ from the small product right·left.

    Both factors are scaled to entries of at most 1 first, so that no intermediate product of finite weights overflows.
    """
    scales = [float(t.abs().max()) or 1.0 for t in (left, right)]
    A, B = (left / scales[0]).numpy(), (right / scales[1]).numpy()
    _, m, width = A.shape
    if width < m:
        R_1, R_2 = (np.asarray(np.linalg.qr(M, mode="r")) for M in (A, B.swapaxes(1, 2)))
        for_sigma, for_lambda = R_1 @ R_2.swapaxes(1, 2), B @ A
    else:
        for_sigma = for_lambda = A @ B
    sigma, lam = np.linalg.svd(for_sigma, compute_uv=False), np.linalg.eigvals(for_lambda)
    rank = tuple(_rank(sigma, (m, m), eps).tolist())
    with np.errstate(over="ignore", invalid="ignore"):
        sigma, lam = sigma * scales[0] * scales[1], lam.astype(complex) * scales[0] * scales[1]
    return Circuits(name, formula, _fixed(sigma), _fixed(_by_size(lam)), rank)


def _fixed(values: np.ndarray) -> np.ndarray:
    values.setflags(write=False)
    return values


def _rank(sigma: Float[np.ndarray, "*head s"], shape: tuple[int, int], eps: float) -> np.ndarray:
    """Singular values above max(shape)·eps·σ_max, eps of the model's dtype: those that rounding alone cannot explain."""
    floor = max(shape) * eps * sigma[..., :1]
    return np.asarray((sigma > floor).sum(axis=-1))


def _by_size(lam: Complex[np.ndarray, "*head s"]) -> Complex[np.ndarray, "*head s"]:
    return np.take_along_axis(lam, np.argsort(-abs(lam), axis=-1, kind="stable"), axis=-1)


def _few(values: np.ndarray, most: int = 3) -> str:
    def one(v: complex) -> str:
        return f"{v.real:.3g}" if abs(v.imag) <= 1e-12 * abs(v) else f"{v.real:.3g}{v.imag:+.3g}i"

    return ", ".join(one(complex(v)) for v in values[:most]) + (", …" if len(values) > most else "")
