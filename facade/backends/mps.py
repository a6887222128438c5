"""`torch.backends.mps`: leafax runs on no Apple GPU."""


def is_available() -> bool:
    """Return False: leafax does not compute there."""
    return False


def is_built() -> bool:
    """False, as `is_available`."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False, as `is_available`."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """False, as `is_available`."""
    return False
