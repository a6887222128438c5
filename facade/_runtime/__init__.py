"""Cuts: running a program, leaving the trace, and values beside the program."""
