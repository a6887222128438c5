"""Backward passes that are replayed, as the program is the one of the last turn."""
