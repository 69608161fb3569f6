"""One block of the model against stock PyTorch on the same weights, measured side by side: `make bench`.

Prints ratios of median times, interleaved in one run so that a busy machine slows them all alike. A ratio above 1
means slower than stock. Stock runs in training mode, whose plain path (no fast path) does the same arithmetic.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from onelayer import SingleLayerTransformer
from onelayer.common.table import Table
from page import options

ROUNDS = 30


def median_times(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(ROUNDS + 3):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if round_ >= 3:  # the first rounds warm up
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


def relative_times(batch: int, tokens: int, d_model: int, heads: int) -> tuple[float, float]:
    """(softmax, fused), each relative to stock."""
    stock = nn.TransformerEncoderLayer(d_model, heads, 4 * d_model, dropout=0.0, batch_first=True).double()
    model = SingleLayerTransformer.from_torch(stock, tokens)
    fused = SingleLayerTransformer(dataclasses.replace(model.config, attention="fused"))
    fused.load_state_dict(model.state_dict())
    x = torch.rand(batch, tokens, d_model, dtype=torch.float64)
    calls = {"stock": lambda: stock(x), "softmax": lambda: model.block(x), "fused": lambda: fused.block(x)}
    with torch.no_grad():
        t = median_times(calls)
    return t["softmax"] / t["stock"], t["fused"] / t["stock"]


def main() -> None:
    options(__doc__).parse_args()
    title = f"One block, float64, {torch.get_num_threads()} thread(s): time relative to stock PyTorch"
    table = Table(title, ("shape (batch×tokens×d_model, heads)", "softmax / stock", "fused / stock"))
    for shape in [(256, 4, 16, 4), (256, 16, 64, 8), (16, 128, 64, 8), (64, 8, 256, 64)]:
        table.rows.append(("×".join(map(str, shape[:3])) + f", {shape[3]}", *relative_times(*shape)))
    print(table)


if __name__ == "__main__":
    main()
