"""Train a small convolutional network on handwritten digits."""

import sys
from collections.abc import Iterable
from typing import Any

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from digits import load_digits
from loop import Log, arguments, batches
from repeatable import Draws, fill

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset


class Net(nn.Module):
    """Two convolutions with batch norm, two linear layers with dropout."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(2 * width * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, 10]` of log-probabilities for `float[batch, 1, 8, 8]`."""
        x = torch.flatten(self.features(x), 1)
        x = self.dropout(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


@torch.no_grad()
def accuracy(model: nn.Module, loader: Iterable[Any]) -> float:
    """Return which share of the loader's digits `model` gets right."""
    model.eval()
    right = total = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    model.train()
    return right / total


def main(steps: int = 300, seed: int = 0, check: bool = False, batch: int = 32) -> list[float]:
    """Train, print how many held-out digits are right, and return the loss of each step."""
    Draws(torch, seed, check)
    images, labels = (torch.from_numpy(array) for array in load_digits())
    train = TensorDataset(images[:1500], labels[:1500])
    test = TensorDataset(images[1500:], labels[1500:])
    loader = DataLoader(train, batch_size=batch, shuffle=not check, drop_last=True)

    model = Net()
    if check:
        fill(model, seed)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.5)

    log = Log(steps)
    for x, y in batches(loader, steps):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        log(loss.item())
    print(f"held-out accuracy {accuracy(model, DataLoader(test, batch_size=99)):.3f}")
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=300))
