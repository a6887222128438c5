"""Train the classifier of a MobileNetV2 to tell even from odd digits, all else frozen."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from digits import load_digits
from loop import Log, arguments
from mobilenet import mobilenet_v2
from repeatable import Draws, fill

nn, optim = torch.nn, torch.optim


def main(
    steps: int = 100, seed: int = 0, check: bool = False, batch: int = 8, size: int = 32
) -> list[float]:
    """Train for `steps` batches of digits of `size` pixels; return the loss of each."""
    draws = Draws(torch, seed, check)
    images, labels = (torch.from_numpy(array) for array in load_digits(size))

    model = mobilenet_v2()
    for param in model.parameters():
        param.requires_grad = False

    model.classifier[1] = nn.Linear(in_features=1280, out_features=2, bias=True)
    if check:
        fill(model, seed)
    # All parameters are registered; only those with a gradient are updated
    optimizer = optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    before = model.features[1].state_dict()["conv.0.0.weight"].clone()

    log = Log(steps)
    for _ in range(steps):
        chosen = draws.randint(len(labels), batch)
        y_p = model(images[chosen].expand(-1, 3, -1, -1))
        loss = nn.functional.cross_entropy(y_p, labels[chosen] % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())
    after = model.features[1].state_dict()["conv.0.0.weight"]
    print(f"the first kernels are as they were: {torch.equal(before, after)}")
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=100))
