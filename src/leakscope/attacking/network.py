"""Would a network trained on these records give them away, and would it be any good?

Theorem 4.2 and Theorem C.1 of **relu** on the user's own records: the conditions first, then a
two-layer network trained to its KKT point, its accuracy and the attack on its members side by side.
"""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__, measures, relu
from leakscope._numerics.arrays import FloatArray
from leakscope.attacking.membership import applicability_of
from leakscope.attacking.network_inputs import TrainingSet, answered, training_rows
from leakscope.data.files import require_new_file, write_file
from leakscope.data.tables import read_table
from leakscope.errors import InputError
from leakscope.relu.kkt import KktResidual
from leakscope.relu.near_orthogonality import LearnableConditions, learnable_conditions
from leakscope.relu.training import TrainedNetworks
from leakscope.results.attacks import Applicability, NetworkAttack, NetworkConditions
from leakscope.results.document import AssumptionEntry
from leakscope.settings.attack import NETWORK_DEFAULTS

# How near the margin, as a share of it, a training record counts as on it.
ON_MARGIN = 0.01
FPR = 0.01

UNFITTED = (
    "The network misclassifies some of its records, so it has no margin and the theorems do not "
    "apply; train a wider one, or for longer."
)


def attack_network(
    data: TrainingSet,
    *,
    held_out: TrainingSet | None = None,
    width: int = NETWORK_DEFAULTS.width,
    steps: int = NETWORK_DEFAULTS.steps,
    seed: int = NETWORK_DEFAULTS.seed,
    save: str | Path | None = None,
) -> NetworkAttack:
    """Train a two-layer ReLU network on records to its KKT point, and attack it.

    Parameters
    ----------
    data
        The training set: records and labels of -1 or 1, or a file whose last column is the label.
    held_out
        Records of the same kind that are not trained on: for the network's accuracy, and as the
        strangers that the attack has to tell from members.
    width, steps
        Neurons, and steps of training at most.
    seed
        For the first weights.
    save
        An .npz file for the network, which the other attacks read.

    Returns
    -------
    NetworkAttack
        Whether the theorems cover the records, how near training came to a KKT point, and accuracy
        beside the attack.

    Raises
    ------
    InputError
        Where labels are not -1 or 1, or the sets do not have the same columns.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope import relu
    >>> x, y = relu.SphereData(150).sample(5, random_state=0), [1, -1, 1, -1, 1]
    >>> found = leakscope.attack_network((x, y), width=30, steps=2000)
    >>> found.applicability.covered, round(found.on_margin, 2)
    (True, 1.0)
    """
    begin = time.perf_counter()
    if save is not None:
        _require_save(Path(save), data, held_out)
    x, y = training_rows(data, _features(data))
    fresh = None if held_out is None else training_rows(held_out, x.shape[1])
    if len({*y.tolist()}) < 2:
        raise InputError("A network is trained on records of both labels, -1 and 1.")
    bounds = relu.margin_bounds(x, y)
    conditions = learnable_conditions(x, y, width)
    plan = relu.TrainingPlan(width=width, steps=steps)
    trained = relu.train(x, y, plan, random_state=seed)
    network = trained.network(0)
    if save is not None:
        stream = io.BytesIO()
        np.savez(stream, w=network.w, b=network.b, v=network.v)
        write_file(Path(save), stream.getvalue())
    margin, fitted = float(trained.margin[0]), bool(trained.correct[0])
    residual = relu.kkt_residual(network, x, y) if fitted else None
    applicability = applicability_of(residual, bounds)
    if not fitted:
        applicability = Applicability(
            covered=bounds.covered, kkt_residual=None, bounds=bounds.to_dict(), statement=UNFITTED
        )
    on_margin = float((trained.margins[0] <= (1.0 + ON_MARGIN) * margin).mean()) if fitted else None
    accuracy = auc = tpr = None
    if fresh is not None:
        answers = trained.outputs(fresh[0])[0]
        accuracy = float((fresh[1] * answers > 0.0).mean())
        if fitted:
            auc, tpr = _attacked(trained, margin, answers)
    return NetworkAttack(
        leakscope_version=__version__,
        settings={"width": width, "steps": steps, "seed": seed},
        provenance=answered(relu.KnownMargin(1.0).attack([1.0]).provenance()),
        assumptions=_assumptions(residual, bounds.covered, conditions),
        timing={"attack": time.perf_counter() - begin},
        warnings=[] if fitted else [UNFITTED],
        records=len(y),
        features=x.shape[1],
        width=width,
        fitted=fitted,
        margin=margin if fitted else None,
        on_margin=on_margin,
        applicability=applicability,
        conditions=NetworkConditions(
            mean=conditions.mean,
            dimension=conditions.dimension,
            width=conditions.width,
            hold=conditions.hold,
            orthogonality={**relu.orthogonality_of(x)},
        ),
        held_out=None if fresh is None else len(fresh[1]),
        accuracy=accuracy,
        auc=auc,
        tpr=tpr,
        fpr=FPR,
        verdict=_verdict(fitted, on_margin, accuracy, auc, tpr, applicability.statement),
    )


def _require_save(path: Path, *read: TrainingSet | None) -> None:
    """Refuse, before any work is done, a file that the network cannot go to."""
    if path.suffix.lower() != ".npz":
        raise InputError(f"save must be an .npz file, but it is {path}.")
    require_new_file(path, "save needs a file name")
    if any(isinstance(one, (str, Path)) and Path(one).resolve() == path.resolve() for one in read):
        raise InputError(f"save {path} would overwrite a file that is read; name another.")


def _features(data: TrainingSet) -> int:
    if isinstance(data, (str, Path)):
        columns = read_table(Path(data)).shape[1]
        if columns < 2:
            raise InputError(f"{data} has {columns} column; records and their label need two.")
        return columns - 1
    values: NDArray[np.generic] = np.asarray(data[0])
    return 1 if values.ndim == 1 else int(values.shape[-1])


def _attacked(trained: TrainedNetworks, margin: float, answers: FloatArray) -> tuple[float, float]:
    """AUC and TPR of the attacker who knows the margin (Cor. 4.3), members against strangers."""
    attack = relu.KnownMargin(margin)
    pair = relu.scores_law_pair(
        attack.attack(trained.margins[0] * trained.y[0]).scores, attack.attack(answers).scores
    )
    auc, tpr = measures.auc(pair), measures.tpr_at_fpr(pair, FPR)
    # of samples a measure is an estimate
    assert isinstance(auc, measures.Estimate)
    assert isinstance(tpr, measures.Estimate)
    return float(auc.value), float(tpr.value)


def _assumptions(
    residual: KktResidual | None, covered: bool, conditions: LearnableConditions
) -> list[AssumptionEntry]:
    return [
        AssumptionEntry(
            statement="the network is a KKT point of the maximum-margin problem",
            holds=None,
            evidence="it does not fit its records"
            if residual is None
            else f"relative residual {residual.residual:.2g}",
        ),
        AssumptionEntry(
            statement="every KKT network on these records has all of them on its margin (Thm 4.2)",
            holds=covered,
            evidence="from the whole Gram matrix",
        ),
        AssumptionEntry(
            statement="Theorem C.1: such a network also generalises",
            holds=None,
            evidence=f"with constants of one: means {conditions.mean:.2g}, dimension "
            f"{conditions.dimension:.2g}, width {conditions.width:.2g}, each to be 1 or more",
        ),
    ]


def _verdict(
    fitted: bool,
    on_margin: float | None,
    accuracy: float | None,
    auc: float | None,
    tpr: float | None,
    statement: str,
) -> str:
    parts = []
    if fitted and on_margin is not None:
        parts.append(f"{on_margin:.0%} of the records lie within 1% of the trained margin.")
    if accuracy is not None:
        parts.append(f"The network classifies {accuracy:.1%} of the held-out records right.")
    if auc is not None:
        parts.append(
            f"The attacker who knows the margin tells members from them with an AUC of {auc:.3f} "
            f"and a TPR of {tpr:.3f} at 1% FPR."
        )
    return " ".join([*parts, statement])
