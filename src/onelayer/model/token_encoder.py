"""The student of token sequences: an embedding, learned positions, ONE stock encoder layer, a linear read-out.

    e_i = E[token_i] + p_i,   y = read-out(LayerNorm(encoder layer(e)))

The layer is `nn.TransformerEncoderLayer`: PyTorch's own attention and feed-forward network, with a mask for padding.
"""

import json
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ..common.errors import InputError


class Student(nn.Module):
    """Tokens [batch, n] and a mask of those that are there → answers [batch, n, out], or [batch, out] if pooled."""

    def __init__(
        self, vocabulary: int, length: int, outputs: int, heads: int, width: int, d_model: int, pooled: bool, seed: int
    ) -> None:
        super().__init__()
        self.pooled = pooled
        self.sizes = {"vocabulary": vocabulary, "length": length, "outputs": outputs, "heads": heads, "width": width}
        self.sizes |= {"d_model": d_model, "pooled": pooled, "seed": seed}
        with torch.random.fork_rng(
            devices=[]
        ):  # modules draw from torch's global generator; these weights are replaced
            self.embedding = nn.Embedding(vocabulary, d_model)
            self.positions = nn.Parameter(torch.zeros(length, d_model))
            self.layer = nn.TransformerEncoderLayer(
                d_model, heads, width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.norm = nn.LayerNorm(d_model)
            self.readout = nn.Linear(d_model, outputs)
        self._draw(seed)

    def _draw(self, seed: int) -> None:
        """Fresh weights from a generator of their own."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, p in self.named_parameters():
                if p.ndim >= 2:
                    scale = 0.02 if name in ("embedding.weight", "positions") else p.shape[-1] ** -0.5
                    p.copy_(torch.randn(p.shape, generator=generator) * scale)
                elif "norm" not in name:
                    p.zero_()

    def forward(self, tokens: Tensor, there: Tensor) -> Tensor:
        self._require(tokens, there)
        e = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        y = self.readout(self.norm(self.layer(e, src_key_padding_mask=~there)))
        return pooled(y, there) if self.pooled else y

    def _require(self, tokens: Tensor, there: Tensor) -> None:
        """Refuse what the student has no embedding or no position for: it knows what it was taught, no more."""
        vocabulary, length = self.sizes["vocabulary"], self.sizes["length"]
        if tokens.is_floating_point() or tokens.ndim != 2 or tokens.shape[1] > length or there.shape != tokens.shape:
            found = f"tokens {list(tokens.shape)} of {tokens.dtype}, mask {list(there.shape)}"
            raise InputError(f"token numbers [N, n], n at most {length}, and a mask of that shape", found, "cut them")
        if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
            found = f"{int(tokens.min())} to {int(tokens.max())}"
            raise InputError(f"token numbers from 0 to {vocabulary - 1}", found, "teach a student with these, too")


def save_student(student: Student, path: Path) -> None:
    """Weights as safetensors, sizes in the metadata: no code."""
    tensors = {name: t.detach().cpu().contiguous() for name, t in student.state_dict().items()}
    save_file(tensors, path, metadata={"student": json.dumps(student.sizes)})


def load_student(path: Path) -> Student:
    """The student of a file."""
    try:
        with safe_open(path, framework="pt") as file:
            sizes = json.loads((file.metadata() or {})["student"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        student = Student(**sizes)
        student.load_state_dict(tensors)
    except Exception as error:  # whatever safetensors, JSON or torch say of a file that is no student
        found = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"a student in {path.name}", found, "name a file that `distill` wrote") from None
    return student.eval()


def pooled(y: Tensor, there: Tensor) -> Tensor:
    """The mean over the tokens that are there."""
    weights = there.to(y.dtype).unsqueeze(-1)
    return (y * weights).sum(dim=1) / weights.sum(dim=1)
