"""Membership inference against least squares and ridge (the paper **linear**).

Before any training: a `GaussianDesign` gives the `law_pair` of a prediction with and without a
record, exact at finite n, asymptotic, or simulated from whole matrices; `LatentSpace`,
`FourierSeries` and `RandomRelu` are the paper's other worlds.  For records
of which only the spectrum of the covariance is known, `spectrum_law_pair`.
"""

from leakscope.linear.data_models import (
    Convention,
    DataModel,
    FourierSeries,
    LatentSpace,
    RandomRelu,
    data_model_law_pair,
)
from leakscope.linear.design import GaussianDesign, OutputNoise, RecordNorms
from leakscope.linear.law_pair import generalization_error, law_pair
from leakscope.linear.moments import ridge_variances, stieltjes
from leakscope.linear.spectrum import spectrum_law_pair

__all__ = [
    "Convention",
    "DataModel",
    "FourierSeries",
    "GaussianDesign",
    "LatentSpace",
    "OutputNoise",
    "RandomRelu",
    "RecordNorms",
    "data_model_law_pair",
    "generalization_error",
    "law_pair",
    "ridge_variances",
    "spectrum_law_pair",
    "stieltjes",
]
