"""Learn to balance a pole by REINFORCE: actions that were followed by much reward, more often."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from cartpole import CartPole
from loop import Log, arguments
from repeatable import Draws, fill

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
Categorical = torch.distributions.Categorical


class Policy(nn.Module):
    """Probabilities of the two actions by a perceptron."""

    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.affine1, self.affine2 = nn.Linear(4, hidden), nn.Linear(hidden, 2)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, 2]` for `float[batch, 4]`."""
        return F.softmax(self.affine2(F.relu(self.affine1(state))), dim=1)


def returns(rewards: list[float], gamma: float) -> torch.Tensor:
    """Return the discounted sum of what follows each step, normalized, `float[steps]`."""
    later, sums = 0.0, list[float]()
    for reward in reversed(rewards):
        later = reward + gamma * later
        sums.append(later)
    values = torch.tensor(sums[::-1])
    return (values - values.mean()) / (values.std() + 1e-6)


def episode(
    policy: Policy, env: CartPole, draws: Draws, check: bool
) -> tuple[list[torch.Tensor], list[float]]:
    """Play until the pole falls; return the actions' log-probabilities and the rewards."""
    log_probs, rewards, state, done = [], [], env.reset(), False
    while not done:
        chances = policy(torch.from_numpy(state).unsqueeze(0))
        law = Categorical(chances)
        action = draws.categories(chances.detach())[:, 0] if check else law.sample()
        log_probs.append(law.log_prob(action))
        state, reward, done = env.step(int(action.item()))
        rewards.append(reward)
    return log_probs, rewards


def main(steps: int = 60, seed: int = 0, check: bool = False, longest: int = 200) -> list[float]:
    """Play `steps` episodes of at most `longest` steps, and return the loss of each."""
    draws, env = Draws(torch, seed, check), CartPole(seed, longest)
    policy = Policy()
    if check:
        fill(policy, seed)
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)

    log = Log(steps)
    for _ in range(steps):
        log_probs, rewards = episode(policy, env, draws, check)
        loss = -(torch.cat(log_probs) * returns(rewards, 0.99)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item(), f"held for {len(rewards)} steps")
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=60))
