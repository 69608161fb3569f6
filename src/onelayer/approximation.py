"""Approximation: a model, what it approximates, and what is proved about it."""

import copy
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np
import torch
from torch import Tensor

from .common.budget import Budget
from .common.checks import is_number, known_options, require_choice, require_seconds, require_seed
from .common.errors import InputError
from .common.progress import Progress
from .common.table import Table
from .layer.facts import Facts
from .layer.weight_format import size_of
from .model.config import LayerConfig
from .model.explanation import Explanation, explain
from .model.history import History
from .model.point_layer import PointLayer
from .model.transformer import SingleLayerTransformer
from .proof.boxes import Covering
from .proof.certificate import Certificate
from .proof.circuit.circuit import Circuit, Naming, circuit_of
from .proof.circuit.effects import AblatedLayer
from .proof.claim import Claim
from .proof.decision import covering
from .proof.properties.judge import Judgement, judge
from .proof.properties.overview import Enclosures, slopes_spanned, values_spanned
from .proof.properties.real_function import RealFunction, layer_function
from .proof.properties.statement import read
from .proof.scope import Scope
from .target.decoding import Decoding
from .target.description import Description, Outside
from .target.domain import Domain
from .target.target import Target

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from .deployment.attention.evaluator import Evaluator
    from .deployment.disguise import Disguise

Attention = Literal["auto", "softmax", "fused", "linear", "sparse", "adaptive"]
CHUNK = 2**22  # attention weights or hidden units held at a time when evaluating


@dataclass(frozen=True, eq=False)
class Approximation:
    """T ≈ f: call it, explain a value, save it.

    `target` is None where f is only described: functions of the gallery, memorised samples, and a callable or data whose
    layer was loaded from a folder.
    """

    model: SingleLayerTransformer
    certificate: Certificate
    facts: Facts
    description: Description
    target: Target | None = None
    history: History | None = None  # of a trained layer; folders do not keep it
    _seen: dict[tuple[Any, ...], bool] = field(default_factory=dict, init=False, repr=False)  # states of the weights
    _config: LayerConfig = field(init=False, repr=False)  # what the certificate is about, beside the weights

    def __post_init__(self) -> None:
        """A target describes itself, with the margin that the certificate keeps."""
        object.__setattr__(self, "_config", self.model.config)
        if self.target is not None:
            described = replace(Description.of(self.target), margin=self.certificate.margin)
            object.__setattr__(self, "description", described)

    @staticmethod
    def of(
        model: SingleLayerTransformer,
        target: Target,
        certificate: Certificate,
        facts: Facts,
        history: History | None = None,
    ) -> "Approximation":
        return Approximation(model, certificate, facts, Description.of(target), target, history)

    @property
    def target_text(self) -> str:
        """The formula or description of the target, and whether the target itself is missing here."""
        here = self.target is not None or self.description.kind in ("gallery", "samples")
        here = here or self.facts.construction == "prompt"  # samples in context are stored as tokens
        return self.description.text if here else f"{self.description.text}, not stored"

    @property
    def domain(self) -> Domain:
        return self.description.domain

    @property
    def shape(self) -> tuple[int, int]:
        return self.description.shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.description.output_shape

    def __call__(self, x: Any, outside: Outside = "allow") -> Any:
        """T(x) for one point or a batch, of the same kind as x (NumPy array or torch tensor).

        The certificate does not speak of every point (`covers`). `outside` says whether to answer all the same ("allow"),
        to refuse points that are not covered ("error"), or to answer for the nearest point of the box ("clip"), which
        may not be covered either: the certificate then says nothing about T(x) − f(x) at the point given.

        The layer computes in the dtype of its weights; a tensor is answered in its own dtype, on its own device, and with
        gradients if it has them (`x.requires_grad`). The certificate speaks of the answer before it is rounded to that dtype.
        """
        return self.call_with(lambda batch: self.values_of(self.model, batch.to(self.model.W_E.device)), x, outside)

    def call_with(self, values: Callable[[Tensor], Tensor], x: Any, outside: Outside) -> Any:
        """`values` [batch, D] → [batch, outputs] at x, in the shapes and kinds that `__call__` takes and returns."""
        d = self.description
        require_choice("outside", outside, get_args(Outside))
        if outside == "error":
            self.require_covered(x)
        placed = d.clipped if outside == "clip" else lambda batch: batch
        self._require_untouched()
        if isinstance(x, Tensor):
            batch, single = d.batch(x.to(self.model.W_E.dtype))
            with torch.set_grad_enabled(x.requires_grad and torch.is_grad_enabled()):
                y = d.shaped(values(placed(batch)), single)
            return y.to(x) if x.is_floating_point() else y.to(x.device)
        try:
            given = torch.from_numpy(np.array(x, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InputError("numbers as input", f"{type(x).__name__}: {error}", "pass an array of numbers") from None
        batch, single = d.batch(given.to(self.model.W_E.dtype))
        with torch.no_grad():
            y = d.shaped(values(placed(batch)), single).cpu()
        found = y.float().numpy() if y.dtype == torch.bfloat16 else y.numpy()  # NumPy has no bfloat16
        return found[()] if found.ndim == 0 else found

    def covers(self, x: Any) -> Any:
        """Whether the certificate speaks of a point exactly as it is given: an array of bools, or a bool for one point.

        True only if it is certain: the point lies in the box, the condition `within` is proved there, every jump of
        `where(…)` is farther away than the margin, all numbers are of the layer's float type, and the weights are those
        that were certified. False for memorised samples, which the layer does not keep.
        """
        covered, single = self._scope.covers(x)
        covered &= self.unchanged
        return bool(covered[0]) if single else covered

    def require_covered(self, x: Any, name: Callable[[int], str] | None = None) -> None:
        """Refuse points that are not covered and say why; `name` says what to call a point in the message."""
        self.require_unchanged()
        self._scope.require(x, name)

    @property
    def _scope(self) -> Scope:
        formula = self.target.formula if self.target is not None else None
        return Scope(self.description, formula, self.certificate.margin, self.model.W_E.dtype)

    @known_options
    def fast(self, attention: Attention = "auto", remainder: float | None = None, device: str = "cpu") -> "Evaluator":
        """The same layer with fused, linear, sparse or adaptive attention, on the CPU or a GPU, and its own proved bound."""
        from .deployment.attention.evaluator import evaluator

        return evaluator(self, attention, remainder, device)

    def answer(self, x: Any) -> Any:
        """The whole numbers, tokens or labels that T(x) stands for; right wherever the proved bound is below ½."""
        return self.decode(self(x.detach().cpu().numpy() if isinstance(x, Tensor) else x))

    def decode(self, y: Any) -> Any:
        """The whole numbers, tokens or labels that values y = T(x) stand for."""
        if self.decoding is None:
            wanted = "a layer whose answers are whole numbers or labels"
            raise InputError(wanted, "one of real values", "call it instead")
        y = np.asarray(y)
        one_class = self.decoding.kind == "largest" and self.output_shape == (1,)
        answers = self.decoding(y[..., None] if one_class else y)
        return answers[()] if answers.ndim == 0 else answers

    @property
    def decoding(self) -> Decoding | None:
        """How values become whole numbers, tokens or labels; None if they are real."""
        return self.description.decoding

    @property
    def vocabulary(self) -> int | None:
        """Inputs are token numbers below this; None if they are real."""
        return self.description.vocabulary

    @property
    def units(self) -> int:
        return self.facts.units

    @property
    def parameters(self) -> int:
        return self.model.parameter_count

    @property
    def weight_format(self) -> str:
        """How the weights are stored: float64, float32, bfloat16 or int8."""
        return self.certificate.weight_format or self.certificate.arithmetic

    @property
    def bytes(self) -> int:
        """The size of all stored numbers."""
        return size_of(self.model, self.weight_format)

    def explain(self, x: Any) -> Explanation:
        """Which heads fire at one point, what each contributes to T(x), and how they add up."""
        self.require_same_dtype()
        batch, single = self.description.batch(torch.as_tensor(np.array(x, dtype=np.float64)).to(self.model.W_E.dtype))
        if not single and len(batch) != 1:
            raise InputError("one point to explain", f"{len(batch)} points", "pass one point")
        return explain(self.model, self.as_tokens(batch), self.facts.heads, self.facts.places, self.token_names())

    def module(self) -> PointLayer:
        """T as an ordinary `nn.Module` from [batch, D] to [batch, m], to be a part of a larger network.

        It has its own copy of the weights: train it, move it or change its dtype, and the approximation stays what it is. The
        certificate is about the approximation alone.
        """
        return PointLayer(copy.deepcopy(self.model), self.facts.places, self.vocabulary)

    @property
    def same_dtype(self) -> bool:
        """Whether the weights still have the dtype that was certified: `.half()` and the like take the proof away."""
        return str(self.model.W_E.dtype) == f"torch.{self.certificate.arithmetic}"

    @property
    def unchanged(self) -> bool:
        """Whether the model is the one that the certificate is about; every statement looks at all its weights."""
        same = self.same_dtype and self.model.config == self._config
        return same and self.certificate.weights == self.model.fingerprint()

    def _require_untouched(self) -> None:
        """What every call asks: the weights are looked at again where torch says that they were changed."""
        tensors = self.model.state_dict(keep_vars=True).values()
        state = (self.model.config, *((t.data_ptr(), t._version, t.dtype) for t in tensors))
        if state not in self._seen:
            self._seen.clear()
            self._seen[state] = self.unchanged
        if not self._seen[state]:
            self._refuse()

    @property
    def _changed(self) -> str:
        """What weights are, if not those of the certificate."""
        now = str(self.model.W_E.dtype).removeprefix("torch.")
        how = "" if self.same_dtype else f", from {self.certificate.arithmetic} to {now}"
        return f"a model that was changed after it was certified{how}"

    def require_unchanged(self) -> None:
        """Refuse a model that is not the one that the certificate is about."""
        self.require_same_dtype()
        if not self.unchanged:
            self._refuse()

    def require_same_dtype(self) -> None:
        """Refuse a model in another dtype than the certified one."""
        if not self.same_dtype:
            self._refuse()

    def require_numbers(self) -> None:
        """Refuse a layer of tokens, about whose real function nothing is asked."""
        if self.vocabulary is not None:
            change = "ask this of a layer whose inputs are numbers"
            raise InputError("a layer of real variables", "one whose inputs are tokens", change)

    def _refuse(self) -> NoReturn:
        now = str(self.model.W_E.dtype).removeprefix("torch.")
        low = {"bfloat16": "dtype='bfloat16'", "float32": "dtype='float32'", "float16": "dtype='bfloat16'"}.get(now, "")
        change = "take the model as built, or certify the changed one"
        change = change if self.same_dtype or not low else f"take the model as built, or build with {low}"
        if stored := self.certificate.weight_format:
            change = f"take the model as built: its numbers are {stored}, its arithmetic is float32"
        raise InputError("the weights that the certificate is about", self._changed, change)

    @known_options
    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the model folder: weights, target, certificate. Complete or absent, never half-written.

        A folder that holds something is refused; `overwrite=True` replaces the model in it and leaves all other files alone.
        """
        from .deployment.folder import save

        return save(self, Path(folder), overwrite)

    @known_options
    def covering(self, seconds: float = 60.0) -> Covering | None:
        """The boxes behind the certificate, proved again within this many seconds, with what is proved in each.

        None where the proof has no boxes (by a theorem or a lemma), where nothing is proved, or where the folder does not
        hold the target. Given the time that the certificate took, the boxes are those of the certificate; given less, they
        may be larger.
        """
        require_seconds(seconds, "the proof", finite=False)
        if self.target is None:
            return None
        self.require_unchanged()
        claim = Claim(self.target, self.certificate.tolerance, self.facts.places)
        return covering(self.model, claim, self.certificate, seconds)

    @known_options
    def range(self, seconds: float = 60.0, seed: int = 0) -> Enclosures:
        """For every output an interval that is proved to hold all values of T on the domain, and values that are reached.

        T is the real function of the stored weights; computed answers are rounded.
        """
        return values_spanned(self._subject(seconds, seed), Budget(seconds), seed)

    @known_options
    def slopes(self, seconds: float = 60.0, seed: int = 0) -> Enclosures:
        """For every output and variable an interval that is proved to hold all slopes ∂T/∂x_i on the domain.

        Proved for layers of smooth heads; for others the ends are infinite, and `reason` says why.
        """
        return slopes_spanned(self._subject(seconds, seed), Budget(seconds), seed)

    def _subject(self, seconds: float, seed: int) -> RealFunction:
        """T as properties see it."""
        require_seconds(seconds, "the proof", finite=False)
        require_seed(seed)
        self.require_numbers()
        self.require_same_dtype()
        return layer_function(self.model, self.facts.places, self.domain)

    @known_options
    def prove(self, text: str, seconds: float = 60.0, seed: int = 0) -> Judgement:
        """Whether T has a property, such as "increasing in x1" (`ol.prove`)."""
        statement = read(text, self.domain.names)
        return judge(self._subject(seconds, seed), statement, Budget(seconds), seed)

    @known_options
    def circuit(
        self, seconds: float = 60.0, accuracy: float = 0.05, seed: int = 0, progress: Progress | None = None
    ) -> Circuit:
        """Heads and hidden units, their edges, and the proved effect of ablating each: lower ≤ sup |T − T without it| ≤ upper.

        The ends are within `accuracy` of each other where the seconds allow it. Upper ends hold for the computed answers, too.
        """
        require_seconds(seconds, "the proof", finite=False)
        require_seed(seed)
        if not is_number(accuracy) or not 0 < accuracy <= 1:
            raise InputError(
                "accuracy, a share above 0 and at most 1", f"{accuracy!r}", "give for instance 0.05 for 5%"
            )
        self.require_unchanged()
        c, model = self.model.config, self.model
        kinds = [kind for kind, count in self.facts.heads for _ in range(count)]
        kinds = kinds if len(kinds) == c.heads else [""] * c.heads
        outputs = ["T"] if c.features_out == 1 else [f"T, output {o + 1}" for o in range(c.features_out)]
        layer = AblatedLayer(model, self.domain, self.facts.places, self.vocabulary)
        return circuit_of(layer, Naming(self.token_names(), outputs, kinds), accuracy, Budget(seconds), seed, progress)

    @known_options
    def disguised(
        self, seed: int = 0, quiet: int = 2, aside: int = 1, pairs: int = 1, seconds: float = 20.0
    ) -> "Disguise":
        """The same function in a random basis, its heads in another order among distractor heads, with a certificate of its own.

        The numbers of distractors: `quiet` heads write next to nothing, `aside` ones where nobody reads, `pairs` cancel.
        """
        from .deployment.disguise import disguised
        from .deployment.distractors import Distractors

        require_seconds(seconds, "the proof", finite=False)
        return disguised(self, Distractors(quiet, aside, pairs), seed, seconds)

    @known_options
    def evaluate(
        self,
        source: str | Path,
        output: str | Path,
        outside: Outside = "allow",
        progress: Progress | None = None,
        overwrite: bool = False,
        dask: str | None = None,
    ) -> int:
        """T at all points of a CSV, Parquet or NumPy file, written to another one in constant memory; returns their number.

        The output is complete or absent; `overwrite=True` replaces a file of that name.
        Call it again to resume a killed run; the output is byte-identical.
        A folder of Parquet parts becomes another one, part by part: here, or on the Dask scheduler at the address `dask`.
        `self.fast(…).evaluate` uses another attention, or a GPU.
        """
        return self.fast().evaluate(source, output, outside, progress, overwrite, dask)

    @known_options
    def plot(self, what: str | None = None, *, at: Any = None, output: int = 0) -> "Figure":
        """A plotly figure: overview, function, error, heads, weights, spectra, training; or contributions, attention or passes
        `at` a point (`ol.plot`)."""
        from .views.plot import plot

        return plot(self, what, at=at, output=output)

    @known_options
    def report(self, path: str | Path = "report.html", overwrite: bool = False) -> Path:
        """Write the report: one page with target, error, heads, weights and certificate, which needs no network.

        `overwrite=True` replaces a file of that name.
        """
        from .views.report import report

        return report(self, path, overwrite)

    def table(self) -> Table:
        c, unchanged, attention = self.certificate, self.unchanged, self.model.config.attention
        low = c.weight_format if unchanged else ""
        heads = ", ".join(f"{count} {kind}" for kind, count in self.facts.heads)
        where = self.description.observed_at
        rows: list[tuple[object, ...]] = [
            ("target", self.target_text),
            ("domain", c.domain if c.method == "lemma" else str(self.domain)),
            ("method", f"{self.facts.method}, construction {self.facts.construction}, layout {self.facts.layout}"),
            *([("attention", attention)] if attention not in ("softmax", "fused") else []),
            ("verdict", c.headline if unchanged else f"none: {self._changed}"),
            ("tolerance", c.tolerance_text),
            ("bound (proved)", c.stated_bound if unchanged else "none proved"),
            (
                "observed error" if unchanged else "observed before",
                f"{c.observed_text} at {c.observed_points:,} {where}",
            ),
            *(c.beside if unchanged else []),
            ("units", f"{self.units:,}"),
            ("heads", heads),
            ("parameters", f"{self.parameters:,}" + (f", {self.bytes:,} bytes as {low}" if low else "")),
            *self.facts.sizes,
            ("seconds", f"{self.facts.seconds:.2f}"),
            *(("what heads do" if i == 0 else "", line) for i, line in enumerate(textwrap.wrap(self.facts.story, 100))),
            *(("note", note) for note in self.facts.notes),
        ]
        return Table("Approximation by one layer", ("", "value"), rows)

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def as_tokens(self, x: Tensor) -> Tensor:
        """The input of the model, [batch, tokens, features], at points [batch, D]."""
        if self.vocabulary is not None:
            return self.description.one_hot(x)
        return x.reshape(x.shape[0], self.model.config.tokens, self.model.config.features_in)

    def values_of(self, model: SingleLayerTransformer, x: Tensor) -> Tensor:
        """[batch, outputs], in chunks that bound the memory of the attention weights and of the hidden units."""
        c = model.config
        rows = max(1, CHUNK // (max(c.heads * c.all_tokens, c.ffn_width) * (c.read_rows.stop - c.read_rows.start)))
        parts = [model(self.as_tokens(part))[:, list(self.facts.places)] for part in x.split(rows)]
        return torch.cat(parts).flatten(1) if parts else x.new_zeros(0, math.prod(self.output_shape))

    def token_names(self) -> list[str]:
        """What explanations and figures call the tokens."""
        c = self.model.config
        data = list(self.domain.names) if c.tokens == self.domain.dimension else ["x"]
        data = data if len(data) == c.tokens else [f"token {j + 1}" for j in range(c.tokens)]
        special = [("anchor", c.anchor_tokens), ("memory", c.memory_tokens), ("output", c.output_tokens)]
        return data + [name if n == 1 else f"{name} {i + 1}" for name, n in special for i in range(n)]
