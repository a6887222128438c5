"""Train a small diffusion model on two half moons, and let it draw points."""

import math
import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from loop import Log, arguments
from repeatable import Draws, fill

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


class Denoiser(nn.Module):
    """Tell the noise in points from the points and the time."""

    frequencies: torch.Tensor

    def __init__(self, width: int = 64, frequencies: int = 8) -> None:
        super().__init__()
        self.register_buffer("frequencies", math.pi * torch.arange(1.0, 1 + frequencies))
        self.net = nn.Sequential(
            nn.Linear(2 + 2 * frequencies, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 2),
        )

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, 2]` for points of that shape and times in [0, 1], `[batch, 1]`."""
        angles = t * self.frequencies
        return self.net(torch.cat([x, angles.sin(), angles.cos()], dim=1))


class Schedule:
    """The amount of noise at each time: the betas of DDPM, linear."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.betas = torch.linspace(1e-4, 0.1, times)
        self.alphas = 1 - self.betas
        self.kept = torch.cumprod(self.alphas, dim=0)

    def noisy(self, x: torch.Tensor, noise: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """Return `x` with as much `noise` as there is at the times `t`, `int64[batch]`."""
        kept = self.kept[t, None]
        return kept.sqrt() * x + (1 - kept).sqrt() * noise

    @torch.no_grad()
    def sample(self, model: Denoiser, count: int, draws: Draws) -> torch.Tensor:
        """Draw `count` points, from noise back to the data."""
        x = draws.randn(count, 2)
        for t in reversed(range(self.times)):
            time = torch.full((count, 1), t / self.times)
            told = self.betas[t] / (1 - self.kept[t]).sqrt() * model(x, time)
            x = (x - told) / self.alphas[t].sqrt()
            if t > 0:
                x = x + self.betas[t].sqrt() * draws.randn(count, 2)
        return x


def moons(draws: Draws, batch: int) -> torch.Tensor:
    """Return points of two half moons, `float[batch, 2]`."""
    angle, upper = math.pi * draws.rand(batch), draws.randint(2, batch) == 0
    x = torch.where(upper, angle.cos(), 1 - angle.cos()) - 0.5
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin()) - 0.25
    return torch.stack([x, y], dim=1) + 0.03 * draws.randn(batch, 2)


def main(
    steps: int = 2000,
    seed: int = 0,
    check: bool = False,
    batch: int = 128,
    times: int = 50,
    width: int = 128,
) -> list[float]:
    """Train, print a picture of points that were drawn, and return the loss of each step."""
    draws, schedule = Draws(torch, seed, check), Schedule(times)
    model = Denoiser(width)
    if check:
        fill(model, seed)
    optimizer = optim.AdamW(model.parameters(), lr=5e-3)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)

    log = Log(steps)
    for _ in range(steps):
        t, noise = draws.randint(times, batch), draws.randn(batch, 2)
        told = model(schedule.noisy(moons(draws, batch), noise, t), t[:, None] / times)
        loss = F.mse_loss(told, noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        log(loss.item())

    picture = [[" "] * 60 for _ in range(16)]
    for x, y in schedule.sample(model, 200, draws).tolist():
        column, row = round((x + 2) * 15), round((1.0 - y) * 8)
        if 0 <= column < 60 and 0 <= row < 16:
            picture[row][column] = "o"
    print("\n".join("".join(row) for row in picture))
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=2000))
