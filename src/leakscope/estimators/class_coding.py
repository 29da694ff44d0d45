"""Classes as numbers, coded as ``leakscope audit`` codes them, and numbers as classes again.

Two classes are one output of -1/2 and +1/2; C > 2 classes are C outputs, one-hot minus 1/C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.largest_normal import chance_of_largest
from leakscope.errors import InputError


@dataclass(frozen=True)
class Classes:
    """The classes of a training set, sorted.

    Attributes
    ----------
    names
        (C,) the class labels.
    """

    names: NDArray[Any]

    def outputs(self, codes: NDArray[np.intp]) -> FloatArray:
        """(n,) or (n, C) the targets of the records with these class numbers."""
        if len(self.names) == 2:
            return np.asarray(codes - 0.5, dtype=np.float64)
        return np.asarray(np.eye(len(self.names))[codes] - 1.0 / len(self.names))

    def chances(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """(q, C) the chance that each class wins, where the latent value is normal.

        With two classes the sign of one normal decides; with C, the largest of C independent
        normals with the same variance.  The class with the largest mean has the largest chance.

        Parameters
        ----------
        mean
            (q,) or (q, C) means of the latent function.
        variance
            (q,) their variance, above zero.
        """
        sigma = np.sqrt(variance)
        if mean.ndim == 1:
            return np.column_stack([ndtr(-mean / sigma), ndtr(mean / sigma)])
        return _largest_of_normals(mean / sigma[:, None])


def coded(y: ArrayLike) -> tuple[Classes, NDArray[np.intp]]:
    """The classes of labels, and each record's class number."""
    labels = column_or_1d(y, warn=True)
    check_classification_targets(labels)
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise InputError(f"the target holds one class only, {str(names[0])!r}; two are needed.")
    return Classes(names), codes


def _largest_of_normals(z: FloatArray) -> FloatArray:
    """(q, C) P(Z_c is the largest) for independent Z_k ~ N(z_k, 1), which sum to one."""
    found = np.column_stack([chance_of_largest(z, c) for c in range(z.shape[1])])
    return np.asarray(found / found.sum(axis=1, keepdims=True))
