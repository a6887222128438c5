"""Answers of PyTorch's modules for kinds of devices that leafax does not compute on."""


def is_available() -> bool:
    """Return False: leafax does not compute there."""
    return False


def device_count() -> int:
    """Return 0: there is no such device."""
    return 0
