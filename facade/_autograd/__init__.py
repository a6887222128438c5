"""The graph of gradient nodes and the engine that walks it."""
