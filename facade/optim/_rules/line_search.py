"""A line search for the strong Wolfe conditions, as PyTorch's L-BFGS does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

#: How much of the decrease that the slope promises is asked for, and how much flatter it must get.
_DECREASE, _FLATTER = 1e-4, 0.9
_CHANGE = 1e-9  # a bracket in which nothing moves by more is not divided


class Point(NamedTuple):
    """Point on the line: what is known at one step length.

    Attributes:
      t: the step length.
      loss: the loss there.
      gradient: the gradient there, as one vector.
      slope: its product with the direction.
    """

    t: Any
    loss: float
    gradient: Any
    slope: Any


def strong_wolfe(
    evaluate: Callable[[Any], Point], start: Point, t: Any, reach: Any, most: int
) -> tuple[Point, int]:
    """Find a step length that meets the strong Wolfe conditions (Nocedal and Wright, 2006, 3.5).

    Args:
      evaluate: computes the point at a step length.
      start: the point at 0.
      t: the step length to begin with.
      reach: the largest element of the direction.
      most: how many more points may be evaluated.

    Returns:
      The point, and how many were evaluated.
    """
    new, before = evaluate(t), start
    count, found = 0, False
    ends: list[Point] = []
    while count < most:
        if _is_too_high(new, start) or (count > 1 and new.loss >= before.loss):
            ends = [before, new]
        elif _is_flat(new, start):
            ends, found = [new], True
        elif new.slope >= 0:
            ends = [before, new]
        if ends:
            break
        near, far = new.t + 0.01 * (new.t - before.t), new.t * 10
        before, new = new, evaluate(_cubic_minimum(before, new, near, far))
        count += 1
    if count == most:
        ends = [start, new]
    return _narrowed(evaluate, start, ends, reach, count, most, found)


def _narrowed(
    evaluate: Callable[[Any], Point], start: Point, ends: list[Point], reach: Any, count: int,
    most: int, found: bool,
) -> tuple[Point, int]:  # fmt: skip
    """Narrow the bracket until its lower end meets the conditions."""
    low, high = _ordered(ends)
    stuck = False
    while not found and count < most:
        left, right = min(ends[0].t, ends[1].t), max(ends[0].t, ends[1].t)
        if abs(ends[1].t - ends[0].t) * reach < _CHANGE:
            break
        t, edge = _cubic_minimum(ends[0], ends[1], left, right), 0.1 * (right - left)
        # Close to an end there is little to learn: the second time, or at it, keep away from it.
        if min(right - t, t - left) < edge:
            if stuck or t >= right or t <= left:
                t = right - edge if abs(t - right) < abs(t - left) else left + edge
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = evaluate(t)
        count += 1
        if _is_too_high(new, start) or new.loss >= ends[low].loss:
            ends[high] = new
            low, high = _ordered(ends)
        else:
            if _is_flat(new, start):
                found = True
            elif new.slope * (ends[high].t - ends[low].t) >= 0:
                ends[high] = ends[low]
            ends[low] = new
    return ends[low], count + 1


def _is_too_high(new: Point, start: Point) -> bool:
    return bool(new.loss > start.loss + _DECREASE * new.t * start.slope)


def _is_flat(new: Point, start: Point) -> bool:
    return bool(abs(new.slope) <= -_FLATTER * start.slope)


def _ordered(ends: list[Point]) -> tuple[int, int]:
    return (0, 1) if ends[0].loss <= ends[-1].loss else (1, 0)


def _cubic_minimum(a: Point, b: Point, low: Any, high: Any) -> Any:
    """Find where the cubic through both points with their slopes is smallest, within bounds."""
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square**0.5
    at = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(at, low), high)
