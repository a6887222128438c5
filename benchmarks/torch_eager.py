"""The MLP and the GPT of `handwritten.py` in torch eager, from the same numbers.

A state is `(parameters, optimizer)`; `step(state, batch)` changes it in place and returns it with
the loss. Only `torch.nn.functional` is used, so that the same lines run with leafax as torch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import handwritten as hand
import torch
import torch.nn.functional as F

State = tuple[dict[str, torch.Tensor], torch.optim.Optimizer]
Batch = tuple[torch.Tensor, torch.Tensor]


class Program(NamedTuple):
    """A training program; it unpacks as `step, state, batch`."""

    step: Callable[[State, Batch], tuple[State, torch.Tensor]]
    state: State
    batch: Callable[[int], Batch]


def make_mlp() -> Program:
    """Return the program of `handwritten.make_mlp`."""
    params = _leaves(hand.mlp_params())
    optimizer = torch.optim.SGD(params.values(), lr=hand.MLP_RATE, momentum=hand.MLP_MOMENTUM)
    return Program(_step(_mlp), (params, optimizer), lambda i: _tensors(hand.mlp_batch(i)))


def make_gpt() -> Program:
    """Return the program of `handwritten.make_gpt`."""
    params = _leaves(hand.gpt_params())
    optimizer = torch.optim.AdamW(params.values(), lr=hand.GPT_RATE, weight_decay=hand.GPT_DECAY)
    return Program(_step(_gpt), (params, optimizer), lambda i: _tensors(hand.gpt_batch(i)))


def _step(logits_of: Callable[[dict[str, torch.Tensor], torch.Tensor], torch.Tensor]) -> Any:
    def step(state: State, batch: Batch) -> tuple[State, torch.Tensor]:
        params, optimizer = state
        inputs, labels = batch
        loss = F.cross_entropy(logits_of(params, inputs).flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        optimizer.step()
        return state, loss.detach()

    return step


def _mlp(params: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    x = F.relu(F.linear(x, params["0.weight"], params["0.bias"]))
    x = F.relu(F.linear(x, params["1.weight"], params["1.bias"]))
    return F.linear(x, params["2.weight"], params["2.bias"])


def _gpt(params: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, params[f"{name}.weight"], params.get(f"{name}.bias"))

    def norm(name: str, x: torch.Tensor) -> torch.Tensor:
        weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
        return F.layer_norm(x, (x.shape[-1],), weight, bias)

    batch, length = tokens.shape
    x = F.embedding(tokens, params["tokens.weight"]) + params["positions.weight"][:length]
    for i in range(hand.GPT_LAYERS):
        qkv = linear(f"{i}.qkv", norm(f"{i}.norm1", x))
        q, k, v = (
            part.view(batch, length, hand.GPT_HEADS, -1).transpose(1, 2)
            for part in qkv.chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(f"{i}.out", y.transpose(1, 2).reshape(batch, length, -1))
        wide = F.gelu(linear(f"{i}.up", norm(f"{i}.norm2", x)), approximate="tanh")
        x = x + linear(f"{i}.down", wide)
    return linear("head", norm("norm", x))


def _leaves(params: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, requires_grad=True) for name, value in params.items()}


def _tensors(batch: hand.Batch) -> Batch:
    inputs = torch.from_numpy(batch[0])
    return inputs if inputs.is_floating_point() else inputs.long(), torch.from_numpy(
        batch[1]
    ).long()
