"""A running mean in C, whose ranges are in the same recording as those of the Python code around it."""

# Must come first: it loads libmarey, which the extension finds by name.
import marey  # noqa: F401, I001

from smooth import _smooth

cpu = _smooth.cpu
cuda = getattr(_smooth, "cuda", None)  # None if built without CUDA
