"""Train a network that doubles the size of digits by PixelShuffle."""

import math
import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from digits import load_digits
from loop import Log, arguments
from repeatable import Draws, fill

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


class SuperResolution(nn.Module):
    """Convolutions at the small size; the last has a channel for each pixel of the large one."""

    def __init__(self, upscale: int, width: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 5, padding=2)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.conv3 = nn.Conv2d(width, upscale**2, 3, padding=1)
        self.pixel_shuffle = nn.PixelShuffle(upscale)
        for conv in (self.conv1, self.conv2):
            nn.init.orthogonal_(conv.weight, nn.init.calculate_gain("relu"))
        nn.init.orthogonal_(self.conv3.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, 1, upscale * height, upscale * width]`."""
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.pixel_shuffle(self.conv3(x))


def psnr(error: float) -> float:
    """Return the peak signal-to-noise ratio in decibels for a mean squared error."""
    return -10 * math.log10(error)


def main(steps: int = 300, seed: int = 0, check: bool = False, batch: int = 32) -> list[float]:
    """Train, print how near held-out digits come to what they were, and return the losses."""
    draws = Draws(torch, seed, check)
    large = torch.from_numpy(load_digits()[0])
    small = F.avg_pool2d(large, 2)

    model = SuperResolution(upscale=2)
    if check:
        fill(model, seed)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.MSELoss()

    log = Log(steps)
    for _ in range(steps):
        chosen = draws.randint(1500, batch)
        loss = criterion(model(small[chosen]), large[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())

    with torch.no_grad():
        model.eval()
        error = F.mse_loss(model(small[1500:]), large[1500:]).item()
    plain = F.interpolate(small[1500:], scale_factor=2, mode="bicubic", align_corners=False)
    print(f"{psnr(error):.2f} dB; bicubic {psnr(F.mse_loss(plain, large[1500:]).item()):.2f} dB")
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=300))
