"""Settings that all tests of distributions rely on."""

import pytest
import torch


@pytest.fixture(autouse=True)
def torch_checks_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have PyTorch check arguments, which it no longer does once something was compiled with it."""
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
