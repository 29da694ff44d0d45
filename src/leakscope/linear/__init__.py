"""Membership inference against least squares and ridge (the paper **linear**).

Before any training: a `GaussianDesign` gives the `law_pair` of a prediction with and without a
record, exact at finite n, asymptotic, or simulated from whole matrices; `LatentSpace`,
`FourierSeries` and `RandomRelu` are the paper's other worlds.  For the user's own records,
`linear_leave_one_out`; for the spectrum of their covariance alone, `spectrum_law_pair`.
"""

from leakscope.linear.asymptotic import ridge_variances, stieltjes
from leakscope.linear.data_model import (
    Convention,
    DataModel,
    Query,
    data_model_law_pair,
    design_law,
    design_moments,
)
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.linear.fourier_series import FourierSeries
from leakscope.linear.generalization import GeneralizationError, generalization_error
from leakscope.linear.latent_space import LatentSpace
from leakscope.linear.law_pair import (
    Attacker,
    label_nodes,
    law_pair,
    moments,
    pair_of_moments,
)
from leakscope.linear.leave_one_out import LinearLeaveOneOut, linear_leave_one_out
from leakscope.linear.output_noise import OutputNoise
from leakscope.linear.random_relu import RandomRelu
from leakscope.linear.spectrum import SpectrumDesign, effective_ridge, spectrum_law_pair
from leakscope.settings import LinearMethod

__all__ = [
    "Attacker",
    "Convention",
    "DataModel",
    "FourierSeries",
    "GaussianDesign",
    "GeneralizationError",
    "LatentSpace",
    "LinearLeaveOneOut",
    "LinearMethod",
    "OutputNoise",
    "Query",
    "RandomRelu",
    "RecordNorms",
    "SpectrumDesign",
    "data_model_law_pair",
    "design_law",
    "design_moments",
    "effective_ridge",
    "generalization_error",
    "label_nodes",
    "law_pair",
    "linear_leave_one_out",
    "moments",
    "pair_of_moments",
    "ridge_variances",
    "spectrum_law_pair",
    "stieltjes",
]
