"""The measured programs in leafax: the very lines of those in torch, with the import changed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import leafax


def leafax_programs(file: str = "torch_eager") -> ModuleType:
    """A file of programs in torch as a module in which `torch` is leafax."""
    path = Path(__file__).parent / f"{file}.py"
    spec = importlib.util.spec_from_file_location(f"leafax_{file}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    names = {"torch": leafax, "torch.nn": leafax.nn, "torch.nn.functional": leafax.nn.functional}
    before: dict[str, Any] = {name: sys.modules.get(name) for name in names}
    try:
        sys.modules.update(names)
        spec.loader.exec_module(module)
    finally:
        for name, was in before.items():
            if was is None:
                del sys.modules[name]
            else:
                sys.modules[name] = was
    return module


def leafax_finetune_head() -> Any:
    """`handwritten.make_finetune_head` as a leafax user writes it."""
    import handwritten as hand
    from models.efficientnet_lite import EfficientNetLite0, load_pretrained

    import leafax.nn.functional as F
    from leafax.adapters import linen

    classes = hand.FINETUNE_CLASSES
    model = linen.Model(EfficientNetLite0(classes), load_pretrained(classes))
    model.freeze("backbone.**", stats=True)
    optimizer = leafax.optim.Adam(model.parameters(), lr=hand.FINETUNE_RATE)

    def step(state: Any, batch: Any) -> Any:
        images, labels = batch
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss.detach()

    def batch(i: int) -> Any:
        images, labels = hand.finetune_batch(i)
        return leafax.from_numpy(images), leafax.from_numpy(labels).long()

    return step, None, batch
