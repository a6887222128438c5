"""Train a small GPT on characters, and let it write."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from loop import Log, arguments
from repeatable import Draws, fill
from text import load_text

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


class Block(nn.Module):
    """Causal self-attention and a perceptron, each added to its normalized input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, length, width]`."""
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Embeddings of characters and positions, blocks, and the characters' scores."""

    def __init__(self, characters: int, context: int, width: int, depth: int) -> None:
        super().__init__()
        self.context = context
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads=4) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        self.head.weight = self.characters.weight  # tied

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, length, characters]` for `int64[batch, length]`."""
        x = self.characters(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, tokens: torch.Tensor, count: int, draws: Draws) -> torch.Tensor:
        """Return `tokens`, `int64[batch, length]`, with `count` more in each row."""
        for _ in range(count):
            logits = self(tokens[:, -self.context :])[:, -1]
            tokens = torch.cat([tokens, draws.categories(F.softmax(logits / 0.8, dim=-1))], dim=1)
        return tokens


def main(
    steps: int = 300,
    seed: int = 0,
    check: bool = False,
    batch: int = 16,
    context: int = 32,
    width: int = 64,
    depth: int = 2,
    count: int = 100,
) -> list[float]:
    """Train, print `count` characters that the model writes, and return the loss of each step."""
    draws = Draws(torch, seed, check)
    text = load_text()
    alphabet = sorted(set(text))
    data = torch.tensor([alphabet.index(character) for character in text])

    model = GPT(len(alphabet), context, width, depth)
    if check:
        fill(model, seed)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)

    log = Log(steps)
    for _ in range(steps):
        ix = draws.randint(len(data) - context - 1, batch)
        x = torch.stack([data[i : i + context] for i in ix])
        y = torch.stack([data[i + 1 : i + 1 + context] for i in ix])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        log(loss.item())

    model.eval()
    written = model.generate(data[None, :context], count, draws)
    print("".join(alphabet[i] for i in written[0].tolist()))
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=300))
