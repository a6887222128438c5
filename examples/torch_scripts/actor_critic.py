"""Learn to balance a pole step by step: an actor and a critic with eligibility traces."""

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


def perceptron(outputs: int, hidden: int = 32) -> nn.Module:
    """Return a network from the state of the pole, `float[4]`, to `float[outputs]`."""
    return nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


class Traces:
    """Gradients that fade: what the model did lately is changed by what comes of it now."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.z_theta = [torch.zeros_like(p) for p in model.parameters()]

    def reset(self) -> None:
        """Forget the episode that is over."""
        for z in self.z_theta:
            z.zero_()

    def add(self, weight: float, delta: torch.Tensor) -> None:
        """Add the gradients to the traces, and put the update for the error `delta` there."""
        for i, p in enumerate(self.model.parameters()):
            assert p.grad is not None
            self.z_theta[i][:] = self.decay * self.z_theta[i] + weight * p.grad
            p.grad[:] = -delta * self.z_theta[i]


def main(
    steps: int = 1500, seed: int = 0, check: bool = False, gamma: float = 0.99, lamda: float = 0.8
) -> list[float]:
    """Take `steps` steps, learning at each; return the squared errors of the critic."""
    draws, env = Draws(torch, seed, check), CartPole(seed)
    actor, critic = perceptron(2), perceptron(1)
    if check:
        fill(actor, seed)
        fill(critic, seed + 1)
    traces = [Traces(model, gamma * lamda) for model in (actor, critic)]
    optimizer = optim.SGD(
        [
            {"params": actor.parameters(), "lr": 1e-2},
            {"params": critic.parameters(), "lr": 1e-2},
        ]
    )

    log, held, discount = Log(steps), [0], 1.0
    state = torch.from_numpy(env.reset())
    for _ in range(steps):
        law = Categorical(logits=actor(state))
        action = draws.categories(law.probs.detach()[None])[0, 0] if check else law.sample()
        after, reward, done = env.step(int(action.item()))
        held[-1] += 1

        v = critic(state)
        with torch.no_grad():
            following = 0.0 if done else gamma * critic(torch.from_numpy(after))
            delta = reward + following - v
            error = delta.pow(2)
        optimizer.zero_grad()
        v.sum().backward()  # the gradient of v, not of a loss
        law.log_prob(action).backward()
        traces[0].add(discount, delta)
        traces[1].add(1.0, delta)
        optimizer.step()
        log(error.item(), f"held for {sum(held[-6:-1]) / 5:.0f} steps lately")

        state, discount = torch.from_numpy(after), discount * gamma
        if done:
            state, discount = torch.from_numpy(env.reset()), 1.0
            held.append(0)
            for trace in traces:
                trace.reset()
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=1500))
