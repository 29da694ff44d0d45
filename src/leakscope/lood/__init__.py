"""Leave-one-out distinguishability under Gaussian processes (the paper **lood**).

From the kernel matrix and the targets of a dataset: for each record, the law of what the model
says at that record, with it and without it in the training set.
"""

from leakscope.lood.all_records import all_records
from leakscope.lood.leave_one_out import LeaveOneOut

__all__ = ["LeaveOneOut", "all_records"]
