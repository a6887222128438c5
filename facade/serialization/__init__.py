"""PyTorch's `torch.serialization`: files of tensors that both libraries read."""

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from ._load import get_unsafe_globals_in_checkpoint as get_unsafe_globals_in_checkpoint
from ._load import load as load
from ._load import read_arrays as read_arrays
from ._locations import default_restore_location as default_restore_location
from ._locations import location_tag as location_tag
from ._locations import register_package as register_package
from ._options import DEFAULT_PROTOCOL as DEFAULT_PROTOCOL
from ._options import FILE_LIKE as FILE_LIKE
from ._options import MAP_LOCATION as MAP_LOCATION
from ._options import LoadEndianness as LoadEndianness
from ._options import get_crc32_options as get_crc32_options
from ._options import get_default_load_endianness as get_default_load_endianness
from ._options import get_default_mmap_options as get_default_mmap_options
from ._options import set_crc32_options as set_crc32_options
from ._options import set_default_load_endianness as set_default_load_endianness
from ._options import set_default_mmap_options as set_default_mmap_options
from ._safe import add_safe_globals as add_safe_globals
from ._safe import clear_safe_globals as clear_safe_globals
from ._safe import get_safe_globals as get_safe_globals
from ._safe import safe_globals as safe_globals
from ._save import save as save

_end_at_callers(__name__)
