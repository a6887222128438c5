"""Errors of PyTorch's exporter to ONNX; nothing raises them here."""


class OnnxExporterWarning(UserWarning):
    """Warnings of the exporter."""


class OnnxExporterError(RuntimeError):
    """Errors of the exporter."""


class UnsupportedOperatorError(OnnxExporterError):
    """An op that the exporter does not know."""


class SymbolicValueError(OnnxExporterError):
    """A value that the exporter cannot write."""
