"""The page over reproduced figures, as a reader sees it."""

from __future__ import annotations

import pandas as pd

from papers import Figure, Made, Panel, judge, reproduce
from papers.gallery import gallery_page


def test_settings_and_verdicts_in_words():
    panel = Panel("error", pd.DataFrame({"n": [1, 2], "error": [1.0, 0.5]}), x="n", y="error")
    claims = (
        judge("it falls", "Fig. 0", "1 to 0.5", as_printed=True),
        judge("it rises | or stays", "Fig. 0", "1 to 0.5", as_printed=False),
        judge("it vanishes", "Fig. 0", "two points", as_printed=None),
    )
    settings = {
        "p/n": [1.5, 2.0, 50.0],
        "noise": 1.0 / 3.0,
        "(a)": {"n": 100, "sizes": [1, 2]},
        "cells": [[2, 1], [2, 8]],
    }
    made = Made((panel,), claims, settings=settings)
    figure = Figure("linear-0", "linear", "Fig. 0", "error against n", lambda order: made)
    page = gallery_page([reproduce(figure), reproduce(figure)], "Made here.")
    assert "6 claims: 2 hold, 2 do not hold, 2 are inconclusive." in page
    assert (
        "p/n 1.5, 2, 50; noise 0.333333; (a) (n: 100, sizes: 1, 2); cells (2, 1), (2, 8)." in page
    )
    assert "it rises \\| or stays | Fig. 0 | **does not hold** |" in page
    assert "by hand. Made here." in page
