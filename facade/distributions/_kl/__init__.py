"""KL divergences."""
