"""A ResNet-18 and a Transformer encoder, written with `torch.nn` and with its functions alone.

The same lines run with leafax as torch, see `programs.py`. All begin with the numbers of
`layers_by_hand.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import layers_by_hand as hand
import torch
import torch.nn.functional as F
from torch import nn

Batch = tuple[torch.Tensor, torch.Tensor]
Logits = Callable[[torch.Tensor], torch.Tensor]


class Program(NamedTuple):
    """A training program; it unpacks as `step, state, batch`. The state changes in place."""

    step: Callable[[Any, Batch], tuple[Any, torch.Tensor]]
    state: Any
    batch: Callable[[int], Batch]


def make_resnet() -> Program:
    """Return the program of `layers_by_hand.make_resnet`, of modules."""
    params, stats = hand.resnet_variables()
    model = _loaded(ResNet(), params | stats)
    return _program(model, _sgd(list(model.parameters())), hand.resnet_batch)


def make_resnet_functions() -> Program:
    """Return the program of `layers_by_hand.make_resnet`, of functions."""
    params, stats = hand.resnet_variables()
    leaves, buffers = _leaves(params), {k: torch.tensor(v) for k, v in stats.items()}
    return _program(
        lambda x: _resnet(leaves, buffers, x), _sgd(list(leaves.values())), hand.resnet_batch
    )


def make_encoder() -> Program:
    """Return the program of `layers_by_hand.make_encoder`, of modules."""
    model = _loaded(Encoder(), hand.encoder_params())
    return _program(model, _adamw(list(model.parameters())), hand.encoder_batch)


def make_encoder_functions() -> Program:
    """Return the program of `layers_by_hand.make_encoder`, of functions."""
    leaves = _leaves(hand.encoder_params())
    return _program(
        lambda tokens: _encoder(leaves, tokens), _adamw(list(leaves.values())), hand.encoder_batch
    )


class Block(nn.Module):
    """Two convolutions with batch norms, and what came in added to them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a map of the same size, or half of it."""
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)  # type: ignore[no-any-return, unused-ignore]


class ResNet(nn.Module):
    """torchvision's ResNet-18, narrower."""

    def __init__(self) -> None:
        super().__init__()
        width = hand.RESNET_WIDTH
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for i, blocks in enumerate(hand.RESNET_BLOCKS):
            outputs = hand.RESNET_WIDTH * 2**i
            made = [Block(width, outputs, 2 if i else 1)]
            made += [Block(outputs, outputs, 1) for _ in range(blocks - 1)]
            self.add_module(f"layer{i + 1}", nn.Sequential(*made))
            width = outputs
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width, hand.RESNET_CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for i in range(len(hand.RESNET_BLOCKS)):
            x = getattr(self, f"layer{i + 1}")(x)
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)  # type: ignore[no-any-return, unused-ignore]


class Encoder(nn.Module):
    """A language model whose layers are those of `nn.TransformerEncoder`."""

    mask: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        width = hand.ENCODER_WIDTH
        self.tokens = nn.Embedding(hand.ENCODER_VOCABULARY, width)
        self.positions = nn.Embedding(hand.ENCODER_TOKENS, width)
        layer = nn.TransformerEncoderLayer(
            width, hand.ENCODER_HEADS, hand.ENCODER_INNER, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, hand.ENCODER_LAYERS)
        self.head = nn.Linear(width, hand.ENCODER_VOCABULARY)
        mask = nn.Transformer.generate_square_subsequent_mask(hand.ENCODER_TOKENS)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return logits of the token that follows each."""
        x = self.tokens(tokens) + self.positions.weight
        x = self.encoder(x, mask=self.mask, is_causal=True)
        return self.head(x)  # type: ignore[no-any-return, unused-ignore]


def _resnet(
    params: dict[str, torch.Tensor], stats: dict[str, torch.Tensor], x: torch.Tensor
) -> torch.Tensor:
    facts = {name: (stride, pad) for name, _, _, _, stride, pad in hand.resnet_convolutions()}

    def conv_norm(name: str, x: torch.Tensor) -> torch.Tensor:
        stride, pad = facts[name]
        norm = hand.norm_of(name)
        x = F.conv2d(x, params[f"{name}.weight"], None, stride, pad)
        stats[f"{norm}.num_batches_tracked"].add_(1)
        return F.batch_norm(
            x, stats[f"{norm}.running_mean"], stats[f"{norm}.running_var"],
            params[f"{norm}.weight"], params[f"{norm}.bias"], True, hand.NORM_MOMENTUM, hand.EPS,
        )  # fmt: skip

    x = F.max_pool2d(F.relu(conv_norm("conv1", x)), 3, 2, 1)
    for i, blocks in enumerate(hand.RESNET_BLOCKS):
        for j in range(blocks):
            name = f"layer{i + 1}.{j}"
            shortcut = f"{name}.downsample.0"
            y = conv_norm(f"{name}.conv2", F.relu(conv_norm(f"{name}.conv1", x)))
            x = F.relu(y + (conv_norm(shortcut, x) if shortcut in facts else x))
    return F.linear(x.mean((2, 3)), params["fc.weight"], params["fc.bias"])


def _encoder(params: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    width, (batch, length) = hand.ENCODER_WIDTH, tokens.shape

    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, params[f"{name}weight"], params[f"{name}bias"])

    def norm(name: str, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (width,), params[f"{name}.weight"], params[f"{name}.bias"])

    x = F.embedding(tokens, params["tokens.weight"]) + params["positions.weight"]
    for i in range(hand.ENCODER_LAYERS):
        layer = f"encoder.layers.{i}"
        qkv = linear(f"{layer}.self_attn.in_proj_", x)
        q, k, v = (
            part.view(batch, length, hand.ENCODER_HEADS, -1).transpose(1, 2)
            for part in qkv.chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = linear(f"{layer}.self_attn.out_proj.", y.transpose(1, 2).reshape(batch, length, -1))
        x = norm(f"{layer}.norm1", x + y)
        wide = F.relu(linear(f"{layer}.linear1.", x))
        x = norm(f"{layer}.norm2", x + linear(f"{layer}.linear2.", wide))
    return linear("head.", x)


def _program(
    logits_of: Logits, optimizer: torch.optim.Optimizer, batch: Callable[[int], Any]
) -> Program:
    def step(state: Any, batch: Batch) -> tuple[Any, torch.Tensor]:
        inputs, labels = batch
        loss = F.cross_entropy(logits_of(inputs).flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        optimizer.step()
        return state, loss.detach()

    def tensors(i: int) -> Batch:
        inputs, labels = map(torch.from_numpy, batch(i))
        return inputs if inputs.is_floating_point() else inputs.long(), labels.long()

    return Program(step, (logits_of, optimizer), tensors)


def _sgd(params: list[torch.Tensor]) -> torch.optim.Optimizer:
    return torch.optim.SGD(
        params, lr=hand.RESNET_RATE, momentum=hand.RESNET_MOMENTUM, weight_decay=hand.RESNET_DECAY
    )


def _adamw(params: list[torch.Tensor]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(params, lr=hand.ENCODER_RATE, weight_decay=hand.ENCODER_DECAY)


def _loaded(model: nn.Module, variables: dict[str, Any]) -> nn.Module:
    model.load_state_dict({name: torch.tensor(value) for name, value in variables.items()})
    return model


def _leaves(params: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, requires_grad=True) for name, value in params.items()}
