"""Models of halves: trained, kept one file each, and as many as it takes.

Which records a model has, and its seed, follow from the run's seed and the model's number alone.
None is trained twice: answers lie in a folder that is named by the digest of recipe and data.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.halves.draw import half
from leakscope.recipes.recipe import Recipe
from leakscope.running.parts import (
    OnProgress,
    Part,
    digest_of,
    part_key,
    run_parts,
    workers_at,
)
from leakscope.settings.audit import TrainingSettings

# In a warning.
NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")
# Where their number is not given, models double from the second of these to the last, until so many
# of the intervals are narrow; where that many are too many for the minutes, there are the first.
FEWEST, USUAL, MOST, ENOUGH = 4, 64, 1024, 0.95
# How long they may take, in minutes, where nothing is said.
USUAL_MINUTES = 10.0


@dataclass(frozen=True, eq=False)
class HalfModels:
    """Scores of all records under all models, and who was trained on whom.

    Attributes
    ----------
    scores, trained_on
        Models x records.
    seconds
        Of training, over all models.
    warnings
        Sentences, each with how many models gave it.
    unsteady
        How many answer otherwise when they are asked again.
    reused
        How many were there already, and ``made`` when the first of them was kept.
    """

    scores: FloatArray
    trained_on: NDArray[np.bool_]
    seconds: float
    warnings: tuple[str, ...]
    unsteady: int = 0
    reused: int = 0
    made: float | None = None


@dataclass(frozen=True, eq=False)
class Halving:
    """How a recipe's halves are drawn and kept.

    Attributes
    ----------
    recipe, seed
        What is trained, and the run's seed.
    codes
        The number of each record's group, where groups are halved whole.
    on_progress
        Called after every model.
    """

    recipe: Recipe
    seed: int
    codes: NDArray[np.intp] | None = None
    on_progress: OnProgress | None = None

    def digest(self) -> str:
        """Of recipe, data, groups and seed."""
        codes = None if self.codes is None else hashlib.sha256(self.codes.tobytes()).hexdigest()
        about = {"recipe": self.recipe.describe(), "groups": codes, "seed": self.seed}
        return digest_of({**about, "data": data_digest(self.recipe.X, self.recipe.y)})

    def half(self, number: int) -> NDArray[np.bool_]:
        """(N,) the records of one model."""
        classes = self.recipe.task == "classification"
        y = self.recipe.y
        return half(y if classes else None, len(y), number, self.seed, self.codes)

    def models(self, count: int, *, folder: Path | None = None, at: Any = None) -> HalfModels:
        """So many models; those that are kept are not trained again."""
        parts = run_parts(
            {model_name(number): number for number in range(count)},
            partial(_trained, replace(self, on_progress=None)),
            folder=folder,
            at=at,
            on_progress=self.on_progress,
        )
        # One that differs from another in its numbers alone is the same.
        warned: dict[str, list[str]] = {}
        for part in parts:
            for form, text in {NUMBER.sub("", t): t for t in part.numbers["warnings"]}.items():
                warned.setdefault(form, []).append(text)
        return HalfModels(
            scores=np.stack([part.arrays["scores"] for part in parts]),
            trained_on=np.stack([self.half(number) for number in range(count)]),
            seconds=float(sum(part.seconds for part in parts)),
            unsteady=sum(not part.numbers["repeats"] for part in parts),
            warnings=tuple(
                f"{texts[0]} (in {len(texts)} of {count} models)" for texts in warned.values()
            ),
        )

    def enough_models(
        self, how: TrainingSettings, place: Path | None, narrow: Callable[[HalfModels], float]
    ) -> HalfModels:
        """As many models as were asked for; else as many as it takes for narrow intervals.

        They double from 64 until 95% of the intervals are narrow, or to 1,024.  The first two say
        how long one takes: no more are trained than fit in the minutes that were given, or ten
        where nothing was said, but four in any case; and where nothing was said and 64 do not fit,
        four.

        Parameters
        ----------
        how
            How many models or minutes, and where they are trained.
        place
            Where folders of models are kept; None to keep none.
        narrow
            The share of the records whose intervals models make narrow.
        """
        with ExitStack() as stack:
            if place is None:
                place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder = place / self.digest()
            at = stack.enter_context(workers_at(scheduler=how.scheduler, workers=how.workers))
            there = {path.stem: path.stat().st_mtime for path in folder.glob("model=*.npz")}
            count = most = how.models or USUAL
            if how.models is None or how.minutes is not None:
                each = 0.5 * self.models(2, folder=folder, at=at).seconds
                seconds = 60.0 * (how.minutes or USUAL_MINUTES)
                fitting = seconds * (at if isinstance(at, int) else 1) / max(each, 1e-6)
                most = 2 ** int(np.log2(np.clip(fitting, FEWEST, MOST)))
                if most < USUAL and how.minutes is None:
                    most = FEWEST
                count = min(count, most)
            models = self.models(count, folder=folder, at=at)
            while count < most and not models.unsteady and narrow(models) < ENOUGH:
                count = min(2 * count, most)
                models = self.models(count, folder=folder, at=at)
        reused = [there[name] for name in map(model_name, range(count)) if name in there]
        return replace(models, reused=len(reused), made=min(reused, default=None))


def model_name(number: int) -> str:
    """Where a model is kept, and what its seed follows from."""
    return f"model={number}"


def _trained(halving: Halving, name: str, number: int) -> Part:
    seed = int(part_key(name, halving.seed).generator().integers(2**31))
    try:
        model = halving.recipe.scored(halving.half(number), seed)
    except InputError as error:
        raise InputError(f"Model {number + 1}: {error}") from error
    numbers = {"warnings": list(model.warnings), "repeats": model.repeats}
    return Part(numbers, {"scores": model.scores})


def data_digest(X: Any, y: NDArray[Any]) -> str:
    """Of the records as the recipe takes them."""
    digest = hashlib.sha256(repr((getattr(X, "shape", None), y.tolist())).encode())
    if hasattr(X, "iloc"):
        from pandas.util import hash_pandas_object

        digest.update(repr(list(X.columns)).encode())
        digest.update(hash_pandas_object(X).to_numpy().tobytes())
    elif hasattr(X, "tocsr"):
        rows = X.tocsr()
        for part in (rows.data, rows.indices, rows.indptr):
            digest.update(np.ascontiguousarray(part).tobytes())
    else:
        digest.update(np.ascontiguousarray(X).tobytes())
    return digest.hexdigest()
