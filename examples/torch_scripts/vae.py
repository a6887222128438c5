"""Train a variational autoencoder on handwritten digits."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from digits import load_digits
from loop import Log, arguments
from repeatable import Draws, fill

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
Bernoulli, Normal = torch.distributions.Bernoulli, torch.distributions.Normal
Independent, kl_divergence = torch.distributions.Independent, torch.distributions.kl_divergence


class VAE(nn.Module):
    """An encoder to a normal distribution over codes, a decoder to one over pixels."""

    def __init__(self, pixels: int = 64, hidden: int = 128, codes: int = 8) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(pixels, hidden), nn.Tanh(), nn.Linear(hidden, 2 * codes)
        )
        self.decoder = nn.Sequential(nn.Linear(codes, hidden), nn.Tanh(), nn.Linear(hidden, pixels))

    def encode(self, x: torch.Tensor) -> torch.distributions.Distribution:
        """Return the distribution of codes for `float[batch, pixels]`."""
        mean, spread = self.encoder(x).chunk(2, dim=1)
        return Independent(Normal(mean, F.softplus(spread) + 1e-4), 1)

    def decode(self, z: torch.Tensor) -> torch.distributions.Distribution:
        """Return the distribution of pixels for `float[batch, codes]`."""
        return Independent(Bernoulli(logits=self.decoder(z), validate_args=False), 1)


def negative_elbo(model: VAE, x: torch.Tensor, noise: torch.Tensor | None) -> torch.Tensor:
    """Return the mean of what `model` loses on `x`.

    Args:
        model: the autoencoder.
        x: pixels in [0, 1], `float[batch, pixels]`.
        noise: of the codes, `float[batch, codes]`; None has the distribution draw it.
    """
    posterior = model.encode(x)
    prior = Independent(Normal(torch.zeros_like(posterior.mean), 1.0), 1)
    z = posterior.rsample() if noise is None else posterior.mean + posterior.stddev * noise
    return (kl_divergence(posterior, prior) - model.decode(z).log_prob(x)).mean()


def main(
    steps: int = 500, seed: int = 0, check: bool = False, batch: int = 64, codes: int = 8
) -> list[float]:
    """Train, print two new digits, and return the loss of each step."""
    draws = Draws(torch, seed, check)
    images = torch.from_numpy(load_digits()[0]).flatten(1)

    model = VAE(codes=codes)
    if check:
        fill(model, seed)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)

    log = Log(steps)
    for _ in range(steps):
        x = images[draws.randint(len(images), batch)]
        loss = negative_elbo(model, x, draws.randn(batch, codes) if check else None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())

    with torch.no_grad():
        new = model.decode(draws.randn(2, codes)).mean.view(2, 8, 8)
    for row in torch.cat([*new], dim=1).tolist():
        print("".join(" .:oO@"[min(5, int(6 * shade))] * 2 for shade in row))
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=500))
