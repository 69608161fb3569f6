"""Explicit softmax attention against its factored form, side by side in one run: the same layer, points and thread.

The first column is the model as it is (`SingleLayerTransformer`), the second `onelayer.fast.Factored` on the form read
from that model's weights. Times are the best of several runs.
"""

import time
from collections.abc import Callable

import numpy as np
import torch

import onelayer as ol
from onelayer.assemble import assemble
from onelayer.build import frame_of
from onelayer.certify.reading import form_of_model
from onelayer.fast import Factored
from onelayer.heads import lattice_gates, scattered_memory
from onelayer.layer import scalar_layer, vector_layer
from onelayer.plan import outputs_of
from onelayer.table import Table

POINTS, RUNS = 2000, 5


def best(call: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def main() -> None:
    torch.set_num_threads(1)
    table = Table(
        f"{POINTS} points, one thread", ("layer", "dtype", "explicit ms", "factored ms", "ratio", "difference")
    )
    one = torch.zeros(1, dtype=torch.float64)
    cases = []
    for counts in ((100,), (10, 10), (32, 32), (10, 10, 10)):
        D = len(counts)
        gates = lattice_gates(list(counts), list(range(D)), D, 1.5)
        cases.append((f"{len(gates)} gates, D = {D}", D, scalar_layer(one, D, (gates, normal(len(gates), D + 2, 1)))))
    memory = scattered_memory(500, (0, 1), 2, 0.6, 0.5, 0)
    cases.append(("500 memory tokens, D = 2", 2, vector_layer(one, 2, (memory, normal(500, 1)))))
    for name, D, layer in cases:
        target = ol.Target("x1", [(0, 1)] * D)
        for dtype in (torch.float64, torch.float32):
            model = assemble(layer, frame_of(target.domain), outputs_of(target)).to(dtype)
            reading = form_of_model(model)
            assert reading is not None
            fast = Factored(reading.form, reading.frame)
            x = torch.from_numpy(np.random.default_rng(0).random((POINTS, D))).to(dtype)
            with torch.no_grad():
                tokens = x.reshape(POINTS, model.config.tokens, -1)
                difference = float((model(tokens).flatten(1) - fast(x)).abs().max())
                slow, quick = best(lambda m=model, t=tokens: m(t)), best(lambda f=fast, x=x: f(x))
            ms = (f"{1e3 * slow:.2f}", f"{1e3 * quick:.2f}", f"{slow / quick:.1f}")
            table.rows.append((name, str(dtype).removeprefix("torch."), *ms, f"{difference:.1e}"))
    print(table)


if __name__ == "__main__":
    main()
