"""`leafax.ops.aten`: PyTorch's names of ops, as checkpoint policies compare them.

>>> import leafax
>>> leafax.ops.aten.mm.default
<OpOverload(op='aten.mm', overload='default')>
"""

from ._api import aten_find as _aten_find  # noqa: F401  # it finds the functions of the names
from ._ops.calls.aten_names import OpOverload as OpOverload
from ._ops.calls.aten_names import OpOverloadPacket as OpOverloadPacket
from ._ops.calls.aten_names import aten as aten
from ._ops.calls.aten_names import overload_of as overload_of
