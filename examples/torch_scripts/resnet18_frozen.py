"""Train the last layer of a ResNet-18, all others frozen."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from digits import load_digits
from loop import Log, arguments
from repeatable import Draws, fill
from resnet import resnet18

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


def main(
    steps: int = 100, seed: int = 0, check: bool = False, batch: int = 8, size: int = 32
) -> list[float]:
    """Train for `steps` batches of digits of `size` pixels; return the loss of each."""
    draws = Draws(torch, seed, check)
    images, labels = (torch.from_numpy(array) for array in load_digits(size))

    model = resnet18()
    if check:
        fill(model, seed)
    for param in model.parameters():
        param.requires_grad = False

    # Replace the last fully-connected layer
    # Parameters of newly constructed modules have requires_grad=True by default
    model.fc = nn.Linear(512, 100)
    if check:
        fill(model.fc, seed)

    # Optimize only the classifier
    optimizer = optim.SGD(model.fc.parameters(), lr=1e-2, momentum=0.9)

    log = Log(steps)
    for _ in range(steps):
        chosen = draws.randint(len(labels), batch)
        x, y = images[chosen].expand(-1, 3, -1, -1), labels[chosen]
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())
    trained = sum(p.numel() for p in model.parameters() if p.grad is not None)
    print(f"{trained:,} of {sum(p.numel() for p in model.parameters()):,} numbers trained")
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=100))
