"""`torch.backends.quantized`: there are no quantized tensors; its switch is kept."""

from __future__ import annotations

engine = "none"
supported_engines: list[str] = ["none"]
