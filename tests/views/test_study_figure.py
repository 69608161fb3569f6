"""Pictures of studies: medians over all seeds, those with an error of 0 too."""

from onelayer.experiments.study.result import Study
from onelayer.experiments.study.sweep import FigureSpec, Sweep
from onelayer.views.study_page import study_figure


def drawn(errors_at_1, errors_at_2, scale):
    """(x, y) of the line through the medians."""
    errors = [(1, e) for e in errors_at_1] + [(2, e) for e in errors_at_2]
    rows = [{"samples": x, "error_seen": e, "status": "done"} for x, e in errors]
    spec = FigureSpec("samples", ("error_seen",), scale=scale)
    figure = study_figure(Study(Sweep("a study", (), figures=(spec,)), tuple(rows)), spec)
    return figure and (list(figure.data[0].x), list(figure.data[0].y))


def test_an_error_of_0_counts_in_the_median():
    assert drawn([0.5, 0.4, 0.3], [0.0, 0.2, 0.1], "log-log") == ([1, 2], [0.4, 0.1])


def test_a_median_of_0_is_left_out_where_the_axis_is_logarithmic():
    assert drawn([0.5, 0.4, 0.3], [0.0, 0.0, 0.1], "log-log") == ([1], [0.4])
    assert drawn([0.5, 0.4, 0.3], [0.0, 0.0, 0.1], "linear-linear") == ([1, 2], [0.4, 0.0])
    assert drawn([0.0], [0.0], "log-log") is None
