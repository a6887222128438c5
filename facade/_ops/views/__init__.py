"""Views and copies of them beyond those of the op table."""
