"""Functions, methods and operators, made from the op table."""
