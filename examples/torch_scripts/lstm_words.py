"""Train an LSTM to foretell the next word, by truncated backpropagation through time."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from loop import Log, arguments
from repeatable import Draws, fill
from text import load_text

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
State = tuple[torch.Tensor, torch.Tensor]


class LanguageModel(nn.Module):
    """Word vectors, an LSTM, and the words' scores."""

    def __init__(self, words: int, width: int = 48, hidden: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, layers)
        self.dropout = nn.Dropout(0.2)
        self.decoder = nn.Linear(hidden, words)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, words: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Return scores, `float[length * batch, words]`, and the state behind the last word.

        Args:
            words: `int64[length, batch]`.
            state: hidden and cell state, each `float[layers, batch, hidden]`.
        """
        output, state = self.lstm(self.dropout(self.embedding(words)), state)
        return self.decoder(self.dropout(output)).flatten(0, 1), state

    def init_hidden(self, batch: int) -> State:
        """Return the state before the first word."""
        weight = next(self.parameters())
        shape = (self.lstm.num_layers, batch, self.lstm.hidden_size)
        return weight.new_zeros(shape), weight.new_zeros(shape)


def main(
    steps: int = 200, seed: int = 0, check: bool = False, batch: int = 16, length: int = 16
) -> list[float]:
    """Train on `batch` columns of text, `length` words a step; return the loss of each step."""
    Draws(torch, seed, check)
    text = load_text().split()
    words = sorted(set(text))
    index = {word: i for i, word in enumerate(words)}
    data = torch.tensor([index[word] for word in text])
    data = data[: len(data) // batch * batch].view(batch, -1).t().contiguous()
    starts = range(0, len(data) - length, length)

    model = LanguageModel(len(words))
    if check:
        fill(model, seed)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)

    log = Log(steps)
    hidden = model.init_hidden(batch)
    for step in range(steps):
        start = starts[step % len(starts)]
        if start == 0:
            hidden = model.init_hidden(batch)
        hidden = (hidden[0].detach(), hidden[1].detach())
        scores, hidden = model(data[start : start + length], hidden)
        loss = F.cross_entropy(scores, data[start + 1 : start + 1 + length].reshape(-1))
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        log(loss.item())
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=200))
