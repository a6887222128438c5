"""Parts of `Module`: attributes, calls, hooks, state, loading and printing."""
