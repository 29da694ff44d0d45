"""What an attacker gains in the paper's other data models, from few designs."""

from __future__ import annotations

import numpy as np

from leakscope import linear
from leakscope._numerics.keys import Key
from leakscope.linear import Attacker, DataModel, OutputNoise, Query, design_moments
from leakscope.measures import ScoredAdvantage, scored_advantage

# a prediction whose variance given the label is less, in label variances, is the label
_EXACT = 1e-9


def data_model_advantage(
    model: DataModel,
    query: Query,
    *,
    attacker: Attacker = "label_hidden",
    noise: OutputNoise | None = None,
    designs: int = 2000,
    random_state: int | np.random.Generator | Key | None = None,
) -> ScoredAdvantage:
    """The advantage at one record of a latent space, a Fourier series or random ReLU features.

    Half of the designs choose the test and the others score it.  Member and non-member share their
    designs, and what is known without drawing is not drawn, so the standard error is that of
    differences (`leakscope.linear.data_model_law_pair`).  An attacker who knows the label of a
    model that repeats labels gains all but the probability that it predicts the label unseen.

    Examples
    --------
    >>> from leakscope.planning import data_model_advantage
    >>> from leakscope.linear import LatentSpace
    >>> model = LatentSpace(n=20, p=100, latent=4)
    >>> found = data_model_advantage(model, model.query(11), designs=500, random_state=1)
    >>> found.stderr < 0.002
    True
    >>> data_model_advantage(
    ...     model, model.query(11), attacker="label_known", designs=50, random_state=1
    ... )
    ScoredAdvantage(value=1.0, stderr=0.0)
    """
    if attacker == "label_known" and (noise is None or noise.variances()[0] == 0.0):
        sides, settled = design_moments(model, query, designs=designs, random_state=random_state)
        label = model.label_variance(query)
        repeated = [side[0] - side[1] ** 2 / label <= _EXACT * label for side in sides]
        if repeated[0].all():
            missed = 1.0 - repeated[1].reshape(min(designs, repeated[1].size), -1).mean(axis=1)
            spread = float(missed.std(ddof=1) / np.sqrt(missed.size))
            share = 1.0 - settled
            return ScoredAdvantage(share * float(missed.mean()), share * spread)
    pair = linear.data_model_law_pair(
        model, query, attacker=attacker, noise=noise, designs=designs, random_state=random_state
    )
    if attacker == "label_hidden":
        return scored_advantage(pair, designs=designs)
    return scored_advantage(pair, linear.label_nodes()[1], choosing=200, designs=designs)
