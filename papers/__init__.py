"""The papers' figures, made again: theory beside simulation, and a verdict on every claim.

One file per figure: `leakscope reproduce linear-2b` is made in ``linear_2.py``.  The package
stands beside leakscope and uses its public names only.
"""

from papers.catalogue import figures, find_figure
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel, Picture
from papers.gallery import read_reproduction, write_gallery, write_reproduction
from papers.making import is_made, reproduce

__all__ = [
    "Claim",
    "Figure",
    "Made",
    "Order",
    "Panel",
    "Picture",
    "figures",
    "find_figure",
    "is_made",
    "judge",
    "read_reproduction",
    "reproduce",
    "write_gallery",
    "write_reproduction",
]
