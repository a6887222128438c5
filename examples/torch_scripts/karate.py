"""Zachary's karate club: 34 members, who met whom, and whom they followed when it split."""

FRIENDS = {
    0: [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
    1: [2, 3, 7, 13, 17, 19, 21, 30],
    2: [3, 7, 8, 9, 13, 27, 28, 32],
    3: [7, 12, 13],
    4: [6, 10],
    5: [6, 10, 16],
    6: [16],
    8: [30, 32, 33],
    9: [33],
    13: [33],
    14: [32, 33],
    15: [32, 33],
    18: [32, 33],
    19: [33],
    20: [32, 33],
    22: [32, 33],
    23: [25, 27, 29, 32, 33],
    24: [25, 27, 31],
    25: [31],
    26: [29, 33],
    27: [33],
    28: [31, 33],
    29: [32, 33],
    30: [32, 33],
    31: [32, 33],
    32: [33],
}  # of the members with higher numbers
OFFICERS = {32, 33, 9, 14, 15, 18, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}


def edges() -> list[tuple[int, int]]:
    """Return who met whom, in both directions, and each member with himself."""
    pairs = [(a, b) for a, others in FRIENDS.items() for b in others]
    return pairs + [(b, a) for a, b in pairs] + [(i, i) for i in range(34)]


def sides() -> list[int]:
    """Return for each member 0, who followed the teacher, or 1, who followed the officers."""
    return [int(i in OFFICERS) for i in range(34)]
