"""The `Tensor` class: its methods by topic, operators and printing."""
