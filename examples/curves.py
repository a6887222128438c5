"""A picture of a training run: losses, gradient norms and accuracies."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Curves:
    """Losses and gradient norms by step, and held-out accuracies by the step they were taken at."""

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    tested: list[int] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)

    def add(self, step: int, loss: float, norm: float) -> None:
        """Note down what was observed after `step`."""
        self.steps.append(step)
        self.losses.append(loss)
        self.norms.append(norm)

    def add_accuracy(self, step: int, accuracy: float) -> None:
        """Note down the share of held-out examples that were right after `step`."""
        self.tested.append(step)
        self.accuracies.append(accuracy)

    def save(self, path: Path) -> None:
        """Draw the curves one above the other and write them as PNG."""
        from matplotlib.figure import Figure  # not pyplot: no window, no global state

        figure = Figure(figsize=(7, 7), layout="constrained")
        loss, norm, accuracy = figure.subplots(3, sharex=True)
        loss.plot(self.steps, self.losses)
        loss.set(ylabel="loss", ylim=(0, None))
        norm.plot(self.steps, self.norms, color="tab:gray")
        norm.set(ylabel="norm of the gradients", ylim=(0, None))
        accuracy.plot(self.tested, [100 * a for a in self.accuracies], "o-", color="tab:green")
        accuracy.set(ylabel="held-out accuracy, %", xlabel="step", ylim=(None, 100))
        for axes in (loss, norm, accuracy):
            axes.grid(alpha=0.3)
        figure.savefig(path, format="png", dpi=120)
