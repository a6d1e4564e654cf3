"""Types of arrays and names that the whole package shares."""

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

Progress = Callable[[int, int, str], object]  # steps done, their number, the name of the next

Name = Hashable  # of a column: text, or whatever pandas allows

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
SmallIntegers = NDArray[np.int32]
States = NDArray[np.int16]  # of cells: a number, null, NaN, or which missing code
Signs = NDArray[np.int8]
Bytes = NDArray[np.uint8]
Stream = NDArray[np.uint64]  # the state of a generator of random numbers
Truths = NDArray[np.bool_]
