"""A call of an op becomes a step in the trie."""
