"""Errors of PyTorch's `torch._dynamo`; nothing raises them here."""


class TorchDynamoException(RuntimeError):
    """Errors of what rewrites bytecode."""


class InternalTorchDynamoError(TorchDynamoException):
    """A mistake of what rewrites bytecode."""


class Unsupported(TorchDynamoException):
    """Code that cannot be rewritten."""


class BackendCompilerFailed(TorchDynamoException):
    """Code that cannot be compiled."""


class UserError(Unsupported):
    """Code that must be written in another way."""


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """A reason to begin anew."""
