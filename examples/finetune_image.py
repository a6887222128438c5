"""Fine-tune an ImageNet network on handwritten digits: PyTorch's loop, on JAX.

EfficientNet-Lite0, a Flax module with its ImageNet weights, keeps its backbone frozen and gets a
new head of ten classes. The head learns from 4,000 real MNIST digits; 1,000 others tell how well.

    python examples/finetune_image.py
    python examples/finetune_image.py --train gradual --epochs 3
"""

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from curves import Curves
from data import Digits, batches, load_digits, to_network
from models.efficientnet_lite import EfficientNetLite0, load_pretrained
from safetensors import safe_open
from safetensors.numpy import save_file
from tqdm import tqdm

import leafax as torch
import leafax.nn.functional as F
from leafax.adapters import summary
from leafax.adapters.linen import Model

LAST_BLOCKS = ("backbone.blocks_14", "backbone.blocks_15", "backbone.head")
HEAD_LR, LAYER_LR = 1e-2, 1e-3  # a new head learns fast, pretrained layers change little
OBSERVE_EVERY = 10  # steps; in between, the loop hands programs to XLA and waits for none


def main(argv: list[str] | None = None) -> float:
    """Fine-tune as the command line says; return the accuracy on held-out digits."""
    start, options = time.perf_counter(), parse(argv)
    if options.device:
        jax.config.update("jax_platforms", f"{options.device},cpu")
    torch.manual_seed(0)
    digits, held_out = load_digits()
    if options.limit:
        digits, held_out = (Digits(*(a[: options.limit] for a in d)) for d in (digits, held_out))

    model = pretrained("head" if options.train == "gradual" else options.train)
    print(summary(model, depth=1 if options.train == "head" else 2))
    optimizer = torch.optim.Adam(parameter_groups(model))
    curves = train(model, optimizer, digits, held_out, options)

    options.out.mkdir(parents=True, exist_ok=True)
    curves.save(options.out / "curves.png")
    saved = options.out / "finetuned.safetensors"
    save(model, saved, options.whole)
    accuracy = curves.accuracies[-1]
    if evaluate(load(saved), held_out, options) != accuracy:
        raise RuntimeError(f"{saved} is not the model that was trained")

    print(f"wrote {options.out / 'curves.png'}")
    print(f"wrote {saved}: {saved.stat().st_size / 1e6:.2f} MB; loaded again, it is as accurate")
    trainable = summary(model, optimizer).totals[0]
    print(f"trained {trainable.numbers:,} numbers; Adam holds {trainable.state_nbytes:,} bytes")
    print(f"{accuracy:.1%} of {len(held_out.labels)} held-out digits are right, "
          f"{time.perf_counter() - start:.0f} s after the start")  # fmt: skip
    return accuracy


def train(
    model: Model, optimizer: Any, digits: Digits, held_out: Digits, options: argparse.Namespace
) -> Curves:
    """Run the loop that a PyTorch user knows; each turn is one XLA program."""
    steps = options.epochs * (len(digits.labels) // options.batch)
    curves, ran, step = Curves(), Counter[str](), 0
    torch.explain(clear=True)
    bar = tqdm(total=steps, unit="step")
    for epoch in range(options.epochs):
        for x, y in loader(digits, options, seed=epoch):
            if options.train == "gradual" and step == steps // 4:
                model.unfreeze(*LAST_BLOCKS)
                optimizer.add_param_group(parameter_groups(model)[1])  # the head's moments stay
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * (1 + math.cos(math.pi * step / steps)) / 2

            logits = model(x)
            loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            norm = gradient_norm(model)
            optimizer.step()

            step += 1
            bar.update()
            if step % OBSERVE_EVERY == 0 or step == steps:
                curves.add(step, loss.item(), norm.item())
                bar.set_postfix(loss=f"{curves.losses[-1]:.3f}")
        curves.add_accuracy(step, evaluate(model, held_out, options))
        bar.write(f"epoch {epoch + 1}: {curves.accuracies[-1]:.1%} of held-out digits are right")
        ran.update(f"{run.how}, by {run.reason}" for run in torch.explain(clear=True))
    bar.close()
    print("programs that ran:", "; ".join(f"{n} {how}" for how, n in sorted(ran.items())))
    return curves


def gradient_norm(model: Model) -> torch.Tensor:
    """Return the norm of all gradients; frozen parameters have none, so they cost nothing."""
    squares = [p.grad.square().sum() for p in model.parameters() if p.grad is not None]
    return sum(squares, torch.tensor(0.0)).sqrt()


def evaluate(model: Model, digits: Digits, options: argparse.Namespace) -> float:
    """Return the share of `digits` that the model gets right."""
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader(digits, options):
            correct += (model(x).argmax(1) == y).sum().item()
    model.train()
    return correct / len(digits.labels)


def loader(
    digits: Digits, options: argparse.Namespace, seed: int | None = None
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield batches as tensors: with a `seed` shuffled, for training, else all in order."""
    for images, labels in batches(digits, 50 if seed is None else options.batch, seed):
        yield torch.from_numpy(to_network(images, options.size)), torch.from_numpy(labels).long()


def pretrained(what: str) -> Model:
    """Return the network with ImageNet weights and a new head, with `what` of it to be trained."""
    model = Model(EfficientNetLite0(num_classes=10), load_pretrained(num_classes=10))
    if what != "all":
        # `stats`: the BatchNorm statistics stay as ImageNet left them, in training mode too.
        model.freeze("backbone", stats=True)
    if what == "last-blocks":
        model.unfreeze(*LAST_BLOCKS)
    return model


def parameter_groups(model: Model) -> list[dict[str, Any]]:
    """Return what trains as the optimizer's groups: the head, and pretrained layers if any."""
    trains = {name: p for name, p in model.named_parameters() if p.requires_grad}
    layers = [trains.pop(name) for name in list(trains) if name.startswith("backbone.")]
    groups = [{"params": list(trains.values()), "peak_lr": HEAD_LR}]
    return groups + ([{"params": layers, "peak_lr": LAYER_LR}] if layers else [])


def save(model: Model, path: Path, whole: bool) -> None:
    """Write the layers that trained, or all, and the names of what trained."""
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    layers = {name.rpartition(".")[0] for name in trained}
    tensors = {
        name: t.numpy()
        for name, t in model.state_dict().items()
        if whole or name.rpartition(".")[0] in layers
    }
    save_file(tensors, path, metadata={"trained": json.dumps(trained)})


def load(path: Path) -> Model:
    """Return a new model with what `save` wrote, the same parameters trainable."""
    model = pretrained("head")
    with safe_open(path, "numpy") as file:
        model.unfreeze(*json.loads(file.metadata()["trained"]))
        found = model.load_state_dict({n: file.get_tensor(n) for n in file.keys()}, strict=False)
    if found.unexpected_keys:
        raise ValueError(f"{path} is of another network: it has {found.unexpected_keys[0]}")
    return model


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("--train", choices=["head", "last-blocks", "all", "gradual"], default="head",
           help="what trains; gradual: the head, then the last blocks too")  # fmt: skip
    option("--epochs", type=int, default=2)
    option("--batch", type=int, default=16, help="digits a step (default: 16)")
    option("--device", choices=["cpu", "cuda", "rocm", "tpu"], help="default: the best one here")
    option("--size", type=int, default=96, help="height and width of the network's images")
    option("--limit", type=int, help="use only so many digits to train on, and to test on")
    option("--out", type=Path, default=Path(__file__).parent / "out", help="where results go")
    option("--whole", action="store_true", help="save all parameters, not only what trained")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
