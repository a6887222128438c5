"""PyTorch's `torch.__future__`: how modules are cast and moved, where that is to change."""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Choose whether a module that is cast or moved gets new parameters."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Tell whether a module that is cast or moved gets new parameters."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Choose whether parameters are swapped; they stay the same objects in either case."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Tell whether parameters are swapped."""
    return _swap_module_params_on_conversion
