"""`torch.random`: the default generator."""

from ._ops.creation.generator import Generator
from ._ops.creation.generator import default_generator as default_generator
from ._ops.creation.generator import fork_rng as fork_rng
from ._ops.creation.generator import get_rng_state as get_rng_state
from ._ops.creation.generator import initial_seed as initial_seed
from ._ops.creation.generator import manual_seed as manual_seed
from ._ops.creation.generator import seed as seed
from ._ops.creation.generator import set_rng_state as set_rng_state


def thread_safe_generator() -> Generator | None:
    """Return the generator of a data loader's thread; None, for the default one, elsewhere."""
    return None
