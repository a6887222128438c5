"""A pole on a cart, to be held upright by pushing the cart left or right: Barto's and Sutton's."""

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


class CartPole:
    """The environment: +1 for each step until the pole falls or the cart leaves the track."""

    def __init__(self, seed: int, longest: int = 200) -> None:
        self.generator, self.longest = np.random.default_rng(seed), longest
        self.reset()

    def reset(self) -> Array:
        """Begin an episode; return place, speed, angle and its speed, `float32[4]`."""
        self.state = self.generator.uniform(-0.05, 0.05, 4)
        self.steps = 0
        return self.state.astype(np.float32)

    def step(self, action: int) -> tuple[Array, float, bool]:
        """Push left (0) or right (1); return the state, the reward, and whether it is over."""
        x, speed, angle, turning = self.state
        sine, cosine = math.sin(angle), math.cos(angle)
        total, force = CART + POLE, FORCE if action == 1 else -FORCE
        pushed = (force + POLE * HALF_LENGTH * turning**2 * sine) / total
        inertia = HALF_LENGTH * (4 / 3 - POLE * cosine**2 / total)
        faster_turning = (GRAVITY * sine - cosine * pushed) / inertia
        faster = pushed - POLE * HALF_LENGTH * faster_turning * cosine / total
        self.state = self.state + SECONDS * np.array([speed, faster, turning, faster_turning])
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
        return self.state.astype(np.float32), 1.0, bool(fallen) or self.steps >= self.longest
