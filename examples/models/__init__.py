"""Networks of the examples, each in one file."""
