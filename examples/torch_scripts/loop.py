"""Arguments, batches without end, losses and times noted: what every script's loop needs."""

import argparse
import statistics
import time
from collections.abc import Iterable, Iterator
from typing import Any


def arguments(steps: int) -> dict[str, Any]:
    """Return the command line as the keywords of a script's `main`.

    Args:
        steps: how many training steps the script takes by default.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", action="store_true", help="run under PyTorch, not leafax")
    parser.add_argument("--steps", type=int, default=steps, help="training steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="take all random numbers from NumPy")
    given = vars(parser.parse_args())
    del given["torch"]  # the script's imports look for it
    return given


def batches(loader: Iterable[Any], steps: int) -> Iterator[Any]:
    """Yield `steps` batches of `loader`, beginning again as often as needed."""
    count = 0
    while True:
        for batch in loader:
            if count == steps:
                return
            yield batch
            count += 1


class Log:
    """Note the loss of each step, and print ten of them with the time that a step takes."""

    def __init__(self, steps: int) -> None:
        self.steps, self.losses, self.times = steps, list[float](), [time.perf_counter()]

    def __call__(self, loss: float, told: str = "") -> None:
        """Note `loss`; `told` is printed behind it."""
        self.losses.append(loss)
        self.times.append(time.perf_counter())
        step = len(self.losses)
        if step % max(1, self.steps // 10) == 0:
            print(
                f"step {step:4}  loss {self.losses[-1]:8.4f}  {self.median:7.2f} ms a step  {told}"
            )

    @property
    def median(self) -> float:
        """Return the median milliseconds of a step, over the later half of those timed."""
        took = [after - before for before, after in zip(self.times, self.times[1:], strict=False)]
        return 1e3 * statistics.median(took[len(took) // 2 :])
