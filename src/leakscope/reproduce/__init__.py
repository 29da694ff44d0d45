"""The papers' figures, made again: theory beside simulation, and a verdict on every claim.

One file a figure: `leakscope reproduce linear-2b` is made in ``linear_2.py``.
"""

from leakscope.reproduce.catalogue import figures, find_figure
from leakscope.reproduce.claims import Claim, judge
from leakscope.reproduce.figure import Figure, Made, Order, Panel, Picture
from leakscope.reproduce.making import reproduce

__all__ = [
    "Claim",
    "Figure",
    "Made",
    "Order",
    "Panel",
    "Picture",
    "figures",
    "find_figure",
    "judge",
    "reproduce",
]
