"""Compiled programs: when to compile, the cache, memory, and errors on the way."""
