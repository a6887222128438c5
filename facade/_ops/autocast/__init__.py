"""Autocast: which ops cast their operands, and where."""
