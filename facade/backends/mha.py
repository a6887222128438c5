"""`torch.backends.mha`: the fast path of attention in eval mode, which is one program anyhow."""

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Tell whether the fast path may be taken."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Remember whether the fast path may be taken."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
