"""Train two convolutional networks against each other: one draws digits, one judges them."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from digits import load_digits
from loop import Log, arguments
from repeatable import Draws, fill

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


def generator(codes: int, width: int) -> nn.Module:
    """Return a network from `float[batch, codes, 1, 1]` to images, `float[batch, 1, 16, 16]`."""
    return nn.Sequential(
        nn.ConvTranspose2d(codes, 2 * width, 4, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(True),
        nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1, bias=False),
        nn.Tanh(),
    )


def discriminator(width: int) -> nn.Module:
    """Return a network from images to how real they are, `float[batch]`, before the sigmoid."""
    return nn.Sequential(
        nn.Conv2d(1, width, 4, stride=2, padding=1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width, 2 * width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(2 * width, 1, 4, bias=False),
        nn.Flatten(0),
    )


def weights_init(module: nn.Module) -> None:
    """Draw the weights of one layer as the paper of DCGAN has them."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def main(
    steps: int = 200,
    seed: int = 0,
    check: bool = False,
    batch: int = 32,
    codes: int = 16,
    width: int = 16,
) -> list[float]:
    """Train, print a digit that was drawn, and return both losses of each step, added."""
    draws = Draws(torch, seed, check)
    images = torch.from_numpy(load_digits(16)[0]) * 2 - 1

    net_g, net_d = generator(codes, width), discriminator(width)
    for net in (net_g, net_d):
        net.apply(weights_init)
        if check:
            fill(net, seed)
    criterion = nn.BCEWithLogitsLoss()
    optimizer_d = optim.Adam(net_d.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_g = optim.Adam(net_g.parameters(), lr=2e-3, betas=(0.5, 0.999))
    real, fake = torch.ones(batch), torch.zeros(batch)

    log = Log(steps)
    for _ in range(steps):
        # The judge: real digits are real, drawn ones are not
        net_d.zero_grad()
        loss_real = criterion(net_d(images[draws.randint(len(images), batch)]), real)
        loss_real.backward()
        drawn = net_g(draws.randn(batch, codes, 1, 1))
        loss_fake = criterion(net_d(drawn.detach()), fake)
        loss_fake.backward()
        optimizer_d.step()

        # The artist: what it drew is to be judged real
        net_g.zero_grad()
        loss_g = criterion(net_d(drawn), real)
        loss_g.backward()
        optimizer_g.step()
        judge, artist = loss_real.item() + loss_fake.item(), loss_g.item()
        log(judge + artist, f"artist {artist:.3f}")

    net_g.eval()
    with torch.no_grad():
        digit = net_g(draws.randn(1, codes, 1, 1))[0, 0]
    for row in digit.tolist():
        print("".join(" .:oO@"[min(5, int(3 * (shade + 1)))] * 2 for shade in row))
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=200))
