"""`torch.backends.openmp`: leafax computes without it."""


def is_available() -> bool:
    """Return False: XLA has kernels and threads of its own."""
    return False
