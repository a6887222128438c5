"""Train a network so that digits of one kind lie near each other, by triplets and by pairs."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from digits import load_digits
from loop import Log, arguments
from repeatable import Draws, fill

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


class Embedder(nn.Module):
    """From images to unit vectors; all of a pair or a triplet pass the same weights."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.PReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.PReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, width]` for `float[batch, 1, 8, 8]`."""
        return F.normalize(self.features(x), dim=1)


class ContrastiveLoss(nn.Module):
    """Pairs of one kind shall be near, others at least `margin` apart."""

    def __init__(self, margin: float = 1.0) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, one: torch.Tensor, two: torch.Tensor, same: torch.Tensor) -> torch.Tensor:
        """Return the mean over the pairs; `same` is `bool[batch]`."""
        distance = F.pairwise_distance(one, two)
        near, far = distance.pow(2), (self.margin - distance).clamp(min=0).pow(2)
        return torch.where(same, near, far).mean()


def main(steps: int = 200, seed: int = 0, check: bool = False, batch: int = 32) -> list[float]:
    """Train, print how many digits their nearest neighbour names; return the losses."""
    draws = Draws(torch, seed, check)
    images, labels = (torch.from_numpy(array) for array in load_digits())
    by_class = torch.stack([(labels[:1500] == c).nonzero()[:130, 0] for c in range(10)])

    model = Embedder()
    if check:
        fill(model, seed)
    triplet, contrastive = nn.TripletMarginLoss(margin=0.5), ContrastiveLoss()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)

    log = Log(steps)
    for _ in range(steps):
        kind = draws.randint(10, batch)
        other = (kind + 1 + draws.randint(9, batch)) % 10
        anchor, positive, negative = (
            model(images[by_class[c, draws.randint(130, batch)]]) for c in (kind, kind, other)
        )
        near = torch.ones(batch, dtype=torch.bool)
        loss = triplet(anchor, positive, negative)
        loss = loss + contrastive(anchor, positive, near) + contrastive(anchor, negative, ~near)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())

    model.eval()
    with torch.no_grad():
        codes = model(images)
    nearest = torch.cdist(codes[1500:], codes[:1500]).argmin(dim=1)
    right = (labels[nearest] == labels[1500:]).float().mean()
    print(f"the nearest neighbour names {right.item():.3f} of the held-out digits")
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=200))
