"""Panels of one coordinate: what heads pass on there, and rounding panel by panel."""

import pytest
import torch
from flint import arb, ctx

from exact import BITS, exact_form
from many_heads import some_block
from onelayer.layer.arithmetic import FLOAT64
from onelayer.layer.assemble import Frame
from onelayer.layer.form import Form
from onelayer.layer.panels import FEWEST, panels_of, passed_on
from onelayer.layer.rounding import deployed
from onelayer.layer.rounding.deployed import FormProgram

PLAIN = Frame((0.0,), (1.0,))


@pytest.mark.parametrize("tokens", [2, 3, 5])
def test_heads_that_are_not_active_pass_on_one_value(tokens):
    block = some_block(120, tokens, tokens)
    panels = panels_of([block], -0.5, 0.5)
    everything = torch.zeros(1, dtype=torch.int64)
    seen = 0
    for panel in range(len(panels)):
        low, high = panels.edges[panel], panels.edges[panel + 1]
        (near,) = panels.near(low, high)
        far = block.part(~near, everything)
        seen += len(far.biases)
        values, slopes, tail = passed_on(far, low, high)
        form = Form(torch.zeros(2, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64), (far,))
        for x in torch.linspace(low, high, 5, dtype=torch.float64).clamp(low, high).tolist():
            exact = exact_form(form, PLAIN, [x])
            for o in range(2):
                with ctx.workprec(BITS):
                    said = sum(
                        (
                            arb(v) + arb(u) * arb(x)
                            for v, u in zip(values[:, o].tolist(), slopes[:, o].tolist(), strict=True)
                        ),
                        arb(0),
                    )
                    assert abs(exact[o] - said) <= arb(float(tail[o])) + arb(2) ** -120
    assert seen > 0.25 * 120 * len(panels)
    assert panels_of([some_block(FEWEST - 1, 2, 0)], -0.5, 0.5) is None


def test_rounding_by_panels_holds_and_is_little_larger(monkeypatch):
    block = some_block(300, 3, 8, outputs=1)
    form = Form(torch.ones(1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64), (block,))
    program, edge = FormProgram.of_form(form, FLOAT64, PLAIN, factored=False), torch.tensor([0.5], dtype=torch.float64)
    found = float(program.rounding(-edge, edge))
    with monkeypatch.context() as patch:
        patch.setattr(deployed, "panels_of", lambda *_: None)
        whole = float(program.rounding(-edge, edge))
    assert 0 < found <= 2 * whole
    x = torch.rand(30, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5
    computed = form(x)
    for at, y in zip(x.tolist(), computed[:, 0].tolist(), strict=True):
        with ctx.workprec(BITS):
            assert abs(exact_form(form, PLAIN, at)[0] - arb(y)) <= found
