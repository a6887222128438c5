"""A convnet with batch norm in torch, whole and frozen but for its head; leafax runs it as well.

A program is `(step, state, batch)`, as in `torch_eager.py`.
"""

from typing import Any

import convnet_by_hand as hand
import torch
import torch.nn.functional as F


def make_convnet(frozen: bool = False) -> tuple[Any, Any, Any]:
    """Return the program of `convnet_by_hand.make_convnet`."""
    params = {
        name: torch.tensor(value, requires_grad=not frozen or name.startswith("head"))
        for name, value in hand.convnet_params().items()
    }
    trained = [p for p in params.values() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=hand.RATE)

    def step(state: Any, batch: Any) -> Any:
        x, labels = batch
        for i, stride in enumerate(hand.STRIDES):
            x = F.conv2d(x, params[f"{i}.weight"], stride=stride, padding=1)
            scale, shift = params[f"{i}.scale"], params[f"{i}.shift"]
            x = F.relu(F.batch_norm(x, None, None, scale, shift, training=True))
        logits = F.linear(x.mean((2, 3)), params["head.weight"], params["head.bias"])
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        optimizer.step()
        return state, loss.detach()

    def batch(i: int) -> Any:
        images, labels = hand.convnet_batch(i)
        return torch.from_numpy(images), torch.from_numpy(labels).long()

    return step, None, batch


def make_frozen() -> tuple[Any, Any, Any]:
    """Return the program of `convnet_by_hand.make_frozen`."""
    return make_convnet(frozen=True)
