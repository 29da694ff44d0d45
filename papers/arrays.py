"""The one array type of the figures."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
