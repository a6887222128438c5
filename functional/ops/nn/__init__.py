"""Ops of `torch.nn.functional`."""
