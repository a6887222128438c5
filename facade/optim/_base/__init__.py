"""The optimizer: groups, hooks, state, and the recording of an update."""
