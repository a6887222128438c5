"""`torch.random`: the default generator."""

from ._random import Generator
from ._random import default_generator as default_generator
from ._random import fork_rng as fork_rng
from ._random import get_rng_state as get_rng_state
from ._random import initial_seed as initial_seed
from ._random import manual_seed as manual_seed
from ._random import seed as seed
from ._random import set_rng_state as set_rng_state


def thread_safe_generator() -> Generator | None:
    """The generator of a data loader's thread; None, for the default one, where there is none."""
    return None
