"""`nn.Module`s as models, and inside Flax models."""
