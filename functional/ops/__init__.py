"""The op table, by family: importing this package fills `leafax.functional.TABLE`.

Each file is one family and enters its ops by decorating functions; a new file is found by
itself.
"""

from importlib import import_module
from pathlib import Path

from ._dims import broadcast_shapes as broadcast_shapes
from ._dims import flatten_size as flatten_size
from ._dims import wrap_dim as wrap_dim
from ._strides import NOT_VIEWABLE as NOT_VIEWABLE
from ._strides import VIEW_RULES as VIEW_RULES
from ._strides import Layout as Layout
from ._strides import contiguous_strides as contiguous_strides

for _file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    import_module(f"{__name__}.{_file.stem}")

from .einsum import einsum_terms as einsum_terms  # noqa: E402
from .fft_kernels import BY_POINTS as BY_POINTS  # noqa: E402
from .fft_kernels import BY_ROOT as BY_ROOT  # noqa: E402
from .fft_kernels import NO_SCALE as NO_SCALE  # noqa: E402
from .linalg_lu import LU as LU  # noqa: E402
from .linalg_lu import Unpacked as Unpacked  # noqa: E402
from .linalg_spectra import SVDOld as SVDOld  # noqa: E402
from .scatter import REDUCTION_NAMES as REDUCTION_NAMES  # noqa: E402
from .slice_writes import need_slice_shape as need_slice_shape  # noqa: E402
from .slice_writes import need_slices as need_slices  # noqa: E402
