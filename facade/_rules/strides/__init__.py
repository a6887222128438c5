"""How results lie in memory."""
