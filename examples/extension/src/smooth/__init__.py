"""A running mean in C, whose ranges stand in the same recording as those of the Python around it."""

# First: it loads libmarey, which the extension needs and finds by its name.
import marey  # noqa: F401, I001

from smooth import _smooth

cpu = _smooth.cpu
cuda = getattr(_smooth, "cuda", None)  # None where it was built without CUDA
