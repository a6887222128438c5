"""Learning rate schedules and averages of weights."""
