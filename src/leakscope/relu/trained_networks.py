"""What training leaves: networks in the span of their data, and the history of the descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.x64 import double_precision
from leakscope.errors import InputError
from leakscope.relu.network import TwoLayerNetwork
from leakscope.relu.span import DataSpan

if TYPE_CHECKING:
    from leakscope.relu.training import TrainingPlan


# Numbers that one block of queries may hold on the way through a network.
BLOCK = 2**27


@dataclass(frozen=True, eq=False)
class TrainingHistory:
    """What was measured at each check: C of them, for B networks.

    Attributes
    ----------
    steps
        (C,), the steps done.
    log_loss, margin, stationarity, complementarity, drift
        (C, B).  The residuals are those along the path since the check before; see `descent`.

    Examples
    --------
    >>> from leakscope.relu import TrainingHistory
    >>> import numpy as np
    >>> one = np.ones((1, 2))
    >>> TrainingHistory(np.array([10]), -one, one, one, one, one).to_dict()["steps"]
    [10]
    """

    steps: NDArray[np.int64]
    log_loss: FloatArray
    margin: FloatArray
    stationarity: FloatArray
    complementarity: FloatArray
    drift: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        names = ("steps", "log_loss", "margin", "stationarity", "complementarity", "drift")
        return {name: getattr(self, name).tolist() for name in names}


@dataclass(frozen=True, eq=False)
class TrainedNetworks:
    """B trained networks, their training sets and how training went.

    Weights are kept in the span of the data; what lies outside it is drawn again from the seed
    when a whole network is asked for, so that fifty networks of width 10,000 in 1,000 dimensions
    take 85 MB and not 4 GB.

    Attributes
    ----------
    plan
        How they were trained.
    x, y
        (B, n, d) points and (B, n) labels, label noise included.
    span, seeds, w, v
        The span, each network's seed, and its weights there: (B, k, r+1), bias last, and (B, k).
    kept
        (B,), what is left, as a factor, of the initial weights outside the span: descent does not
        move them, but weight decay and every scaling of the network do.
    history
        The checks.

    Examples
    --------
    >>> from leakscope.relu import SphereData, TrainingPlan, train
    >>> x, y = SphereData(50).training_sets(2, 6, random_state=0)
    >>> trained = train(x, y, TrainingPlan(width=40, steps=3000), random_state=0)
    >>> trained.margins.shape
    (2, 6)
    >>> bool(abs(trained.network(1).margins(x[1], y[1]) - trained.margins[1]).max() < 1e-9)
    True
    """

    plan: TrainingPlan
    x: FloatArray
    y: FloatArray
    span: DataSpan
    seeds: tuple[int, ...]
    w: FloatArray
    v: FloatArray
    kept: FloatArray
    history: TrainingHistory

    def __len__(self) -> int:
        return len(self.v)

    @property
    def margins(self) -> FloatArray:
        """y_i f(x_i) at the training points, (B, n)."""
        before = np.einsum("bkr,bnr->bkn", self.w[..., :-1], self.span.coordinates)
        before += self.w[..., -1:]
        return np.asarray(self.y * np.einsum("bk,bkn->bn", self.v, np.maximum(before, 0.0)))

    @property
    def margin(self) -> FloatArray:
        """The least of each network's margins, (B,)."""
        return np.asarray(self.margins.min(axis=1))

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether every training point is classified as its label says, (B,)."""
        return self.margin > 0.0

    @property
    def residual(self) -> FloatArray:
        """The last residual along the path: the largest of its three parts, (B,)."""
        last = self.history
        parts = (last.stationarity[-1], last.complementarity[-1], last.drift[-1])
        return np.asarray(np.max(parts, axis=0))

    def network(self, index: int) -> TwoLayerNetwork:
        """Network ``index`` with all its d weights a neuron."""
        with double_precision():
            w = np.asarray(self._whole(index))
        return TwoLayerNetwork(w, self.w[index, :, -1], self.v[index])

    def outputs(self, queries: ArrayLike) -> FloatArray:
        """f at ``queries``, (m, d) for all networks or (B, m, d), one set each; (B, m)."""
        asked = np.asarray(queries, dtype=np.float64)
        if asked.ndim == 2:
            asked = np.broadcast_to(asked, (len(self), *asked.shape))
        if asked.ndim != 3 or len(asked) != len(self) or asked.shape[2] != self.x.shape[2]:
            raise InputError(
                f"Queries must have {self.x.shape[2]} features, one set for all or one for each "
                f"of the {len(self)} networks, but their shape is {np.shape(queries)}."
            )
        block = max(BLOCK // self.v.shape[1], 1)
        answers = np.empty(asked.shape[:2])
        with double_precision():
            import jax.numpy as jnp

            for i in range(len(self)):
                w, b = self._whole(i), jnp.asarray(self.w[i, :, -1])
                v = jnp.asarray(self.v[i])
                for first in range(0, asked.shape[1], block):
                    part = jnp.asarray(asked[i, first : first + block])
                    found = jnp.maximum(part @ w.T + b, 0.0) @ v
                    answers[i, first : first + block] = np.asarray(found)
        return answers

    def _whole(self, index: int) -> Any:
        import jax.numpy as jnp

        inside = jnp.asarray(self.w[index, :, :-1])
        if self.span.whole:
            return inside
        basis = jnp.asarray(self.span.basis[index])
        first = drawn_weights(self.plan, self.x.shape[2], self.seeds[index])[0]
        return self.kept[index] * (first - (first @ basis.T) @ basis) + inside @ basis


def drawn_weights(plan: TrainingPlan, features: int, seed: int) -> tuple[Any, Any, Any]:
    """w (k, d), b (k,), v (k,) at initialisation; the same on every device."""
    import jax
    import jax.numpy as jnp

    hidden, bias, output = jax.random.split(jax.random.key(seed), 3)
    limit = plan.output_scale / np.sqrt(plan.width)
    return (
        plan.initial_scale * jax.random.normal(hidden, (plan.width, features), jnp.float64),
        plan.initial_scale * jax.random.normal(bias, (plan.width,), jnp.float64),
        jax.random.uniform(output, (plan.width,), jnp.float64, -limit, limit),
    )


class FirstWeights(NamedTuple):
    """W (k, r+1) in the span, bias last, v (k,), and the squared norm outside the span."""

    w: Any
    v: Any
    outside: Any


def first_weights(plan: TrainingPlan, basis: FloatArray, seed: int) -> FirstWeights:
    """The initial weights in the coordinates of the span."""
    import jax.numpy as jnp

    w, b, v = drawn_weights(plan, basis.shape[1], seed)
    rows = jnp.asarray(basis)
    inside = w @ rows.T
    outside = jnp.zeros(()) if basis.shape[0] == basis.shape[1] else w - inside @ rows
    return FirstWeights(jnp.concatenate([inside, b[:, None]], axis=1), v, jnp.sum(outside**2))
