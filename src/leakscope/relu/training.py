"""Training two-layer ReLU networks to an approximate KKT point, many at once.

Training runs in the span of the data: at most n + 1 numbers a neuron, whatever the dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope._numerics.x64 import double_precision, require_jax
from leakscope.errors import InputError
from leakscope.relu import descent
from leakscope.relu.network import TwoLayerNetwork, signs

Loss = Literal["exponential", "logistic"]

# Bytes that the arrays of one step may take on a CPU before a batch falls out of its cache.
CPU_BATCH_BYTES = 4 * 2**20

# The same on an accelerator, where only memory limits a batch.
DEVICE_BATCH_BYTES = 16 * 2**30

# Numbers that one block of queries may hold on the way through a network.
BLOCK = 2**27


@dataclass(frozen=True, eq=False)
class DataSpan:
    """Orthonormal coordinates of training points, one set of points a network.

    The gradient of y_i f(x_i) in w_j is a multiple of x_i.  So w_j(t) - w_j(0) stays in the span
    of the points, and what is orthogonal to it stays as it was initialised; the network's values
    at the training points do not see it.
    """

    basis: FloatArray  # (B, r, d), orthonormal rows that span each set of points; r = min(n, d)
    # (B, n, r), the points in that basis: ``coordinates @ basis`` gives them back.
    coordinates: FloatArray

    @classmethod
    def of(cls, points: ArrayLike) -> DataSpan:
        """The span of ``points`` (B, n, d), by a QR factorisation of each set."""
        x = np.asarray(points, dtype=np.float64)
        sets, count, features = x.shape
        if features <= count:
            basis = np.broadcast_to(np.eye(features), (sets, features, features))
            return cls(basis, x)
        q, r = np.linalg.qr(np.swapaxes(x, 1, 2))
        return cls(np.swapaxes(q, 1, 2), np.swapaxes(r, 1, 2))

    @property
    def rank(self) -> int:
        """r, the number of coordinates."""
        return int(self.coordinates.shape[2])

    @property
    def whole(self) -> bool:
        """Whether the basis is the identity, so that nothing lies outside the span."""
        return self.rank == int(self.basis.shape[2])


# The flow comes after a quarter of the steps.  Before it the margin is capped at the first of these
# numbers; after it the cap rises to the second, so that descent goes on from a loss near zero.
FLOW_MARGIN, LAST_MARGIN = 100.0, 3000.0


@dataclass(frozen=True)
class TrainingPlan:
    """How networks are trained.

    Parameters
    ----------
    width
        k, the number of hidden neurons.
    loss
        ``"exponential"``, exp(-y f), or ``"logistic"``, log(1 + exp(-y f)).
    initial_scale
        First-layer weights and biases start at this times a standard normal; output weights start
        uniform between -1/sqrt(k) and 1/sqrt(k).
    step
        Size of a step in units of the local bound of the curvature; 1 is the largest safe one.
    steps
        At most so many.
    tolerance
        Stop when the residual measured along the path is at or below this.
    flow_steps
        After a quarter of the steps, so many steps of the limit of vanishing loss (`descent.flow`):
        plain descent turns the direction only logarithmically in time, and these steps bring it
        near a KKT point.  0: plain descent.
    check_every
        Steps between two measurements of the residual.
    """

    width: int = 1000
    loss: Loss = "exponential"
    initial_scale: float = 1e-4
    step: float = 1.0
    steps: int = 20_000
    tolerance: float = 0.0
    flow_steps: int = 4000
    check_every: int = 1000

    def __post_init__(self) -> None:
        if self.loss not in get_args(Loss):
            raise InputError(f"loss must be exponential or logistic, not {self.loss!r}.")
        least = {"width": 1, "steps": 1, "check_every": 1, "flow_steps": 0, "tolerance": 0.0}
        for name, value in least.items():
            if not value <= getattr(self, name) < np.inf:
                raise InputError(f"{name} must be {value} or more, not {getattr(self, name)}.")
        for name in ("initial_scale", "step"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise InputError(f"{name} must be positive, but it is {getattr(self, name)}.")

    @property
    def flow_at(self) -> int:
        """The step of descent after which the flow comes."""
        return max(self.steps // 4, 1)


def train(
    x: ArrayLike,
    y: ArrayLike,
    plan: TrainingPlan | None = None,
    *,
    networks: int | None = None,
    batch: int | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> TrainedNetworks:
    """Train networks to an approximate KKT point of the maximum-margin problem (Eq. (1)).

    Full-batch descent in float64 on the gradient of log L, on whatever device JAX has.  It runs
    in the span of each training set, and by the residual it knows when to stop; see `descent`.

    Parameters
    ----------
    x
        Points: (n, d), the same for all networks, or (B, n, d), a set for each.
    y
        Labels -1 or 1, (n,) or (B, n).
    plan
        How to train; the default plan where left out.
    networks
        How many networks are trained on one set of points; they differ in initialisation.
    batch
        How many networks take their steps together; chosen from the device and the sizes where
        left out.
    random_state
        For initialisation; network i draws from child i.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.relu import TrainingPlan, train
    >>> x = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [0.0, -2.0]])
    >>> y = np.array([1.0, -1.0, 1.0, -1.0])
    >>> trained = train(x, y, TrainingPlan(width=30, steps=4000), networks=3, random_state=1)
    >>> trained.correct.tolist()
    [True, True, True]
    >>> trained.network(0)
    TwoLayerNetwork(width=30, features=2)
    """
    require_jax("Training a ReLU network")
    plan = TrainingPlan() if plan is None else plan
    points, labels = _training_sets(x, y, networks)
    key = as_key(random_state)
    count, n, features = points.shape
    require_memory(
        8 * plan.width * (2 * features + 4 * (min(n, features) + n)),
        f"A network of width {plan.width} on {features} features",
        "train a narrower one",
    )
    span = DataSpan.of(points)
    seeds = [int(key.child(i, 0).generator().integers(2**31)) for i in range(count)]
    size = batch or batch_size(plan.width, n, span.rank, count)
    parts = [
        _train_batch(span, labels, plan, seeds, range(i, min(i + size, count)))
        for i in range(0, count, size)
    ]
    w, v, kept, residual = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return TrainedNetworks(plan, points, labels, span, tuple(seeds), w, v, kept, residual)


def batch_size(width: int, n: int, rank: int, networks: int) -> int:
    """How many networks to step together: what fits the cache of a CPU, or a device's memory."""
    import jax

    each = 8 * width * (2 * n + 2 * (rank + 1) + 2)
    limit = CPU_BATCH_BYTES if jax.default_backend() == "cpu" else DEVICE_BATCH_BYTES
    batches = -(-networks // max(limit // each, 1))
    return int(-(-networks // batches))


def _training_sets(
    x: ArrayLike, y: ArrayLike, networks: int | None
) -> tuple[FloatArray, FloatArray]:
    points = np.asarray(x, dtype=np.float64)
    labels = np.asarray(y, dtype=np.float64)
    if points.ndim == 2:
        count = 1 if networks is None else networks
        if count < 1:
            raise InputError(f"networks must be 1 or more, but it is {count}.")
        points = np.broadcast_to(points, (count, *points.shape))
    elif networks is not None and points.ndim == 3 and networks != len(points):
        raise InputError(f"There are {len(points)} training sets, but networks is {networks}.")
    if points.ndim != 3 or 0 in points.shape:
        raise InputError(
            "Training points must be (points, features), or (sets, points, features), but their "
            f"shape is {np.shape(x)}."
        )
    if labels.ndim == 1:
        labels = np.broadcast_to(labels, (len(points), len(labels)))
    if labels.shape != points.shape[:2]:
        raise InputError(
            f"There must be one label per point, but points have shape {np.shape(x)} and labels "
            f"{np.shape(y)}."
        )
    if not np.isfinite(points).all():
        place = [int(i) for i in np.argwhere(~np.isfinite(points))[0]]
        raise InputError(f"The training points must be finite, but row {place[1]} is not.")
    signs(labels.ravel(), labels.size)
    return points, labels


def _train_batch(
    span: DataSpan, labels: FloatArray, plan: TrainingPlan, seeds: list[int], rows: range
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """W and v in the span, what is kept of the weights outside it, and the last residual."""
    with double_precision():
        import jax.numpy as jnp

        coordinates = span.coordinates[rows.start : rows.stop]
        z = np.concatenate([coordinates, np.ones((*coordinates.shape[:2], 1))], axis=2)
        squared = (z**2).sum(axis=2)
        problem = descent.Problem(
            jnp.asarray(z),
            jnp.asarray(labels[rows.start : rows.stop]),
            jnp.asarray(squared),
            jnp.asarray(np.sqrt(squared.max(axis=1))),
        )
        starts = [_first_weights(plan, span.basis[i], seeds[i]) for i in rows]
        w, v, outside = (jnp.stack(parts) for parts in zip(*starts, strict=True))
        kept = jnp.ones_like(outside)
        residual, done, flows = outside, 0, plan.flow_steps > 0
        while done < plan.steps:
            ahead = plan.flow_at if flows and done < plan.flow_at else plan.steps
            steps = min(plan.check_every, ahead - done)
            run = descent.compiled_run(steps, plan.loss)
            caps = jnp.asarray(_caps(plan, done, steps))
            state, residual = run(w, v, kept**2 * outside, problem, jnp.asarray(plan.step), caps)
            w, v, kept = state.w, state.v, kept * state.shrunk
            done += steps
            if flows and done == plan.flow_at:
                w, v, shrunk = descent.flow(w, v, problem, plan.flow_steps)
                kept = kept * shrunk
            elif float(residual.max()) <= plan.tolerance and done > plan.flow_at * flows:
                break
        return np.asarray(w), np.asarray(v), np.asarray(kept), np.asarray(residual)


def _caps(plan: TrainingPlan, done: int, steps: int) -> FloatArray:
    if not plan.flow_steps:
        return np.full(steps, np.inf)
    at = (done + np.arange(steps) - plan.flow_at) / max(plan.steps - plan.flow_at, 1)
    return np.asarray(FLOW_MARGIN * (LAST_MARGIN / FLOW_MARGIN) ** np.clip(at, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class TrainedNetworks:
    """B trained networks, their training sets and how near to a KKT point they are.

    Weights are kept in the span of the data; what lies outside it is drawn again from the seed
    when a whole network is asked for, so that fifty networks of width 10,000 in 1,000 dimensions
    take 85 MB and not 4 GB.
    """

    plan: TrainingPlan  # how they were trained
    x: FloatArray  # (B, n, d) points and (B, n) labels
    y: FloatArray
    # The span, each network's seed, and its weights there: (B, k, r+1), bias last, and (B, k).
    span: DataSpan
    seeds: tuple[int, ...]
    w: FloatArray
    v: FloatArray
    # (B,), what is left, as a factor, of the initial weights outside the span: descent does not
    # move them, but every scaling of the network does.
    kept: FloatArray
    residual: FloatArray  # (B,), the last KKT residual along the path; see `descent.residual`

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
    limit = 1.0 / np.sqrt(plan.width)
    return (
        plan.initial_scale * jax.random.normal(hidden, (plan.width, features), jnp.float64),
        plan.initial_scale * jax.random.normal(bias, (plan.width,), jnp.float64),
        jax.random.uniform(output, (plan.width,), jnp.float64, -limit, limit),
    )


def _first_weights(plan: TrainingPlan, basis: FloatArray, seed: int) -> tuple[Any, Any, Any]:
    """W (k, r+1) in the span, bias last, v (k,), and the squared norm outside the span."""
    import jax.numpy as jnp

    w, b, v = drawn_weights(plan, basis.shape[1], seed)
    rows = jnp.asarray(basis)
    inside = w @ rows.T
    outside = jnp.zeros(()) if basis.shape[0] == basis.shape[1] else w - inside @ rows
    return jnp.concatenate([inside, b[:, None]], axis=1), v, jnp.sum(outside**2)
