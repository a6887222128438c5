"""Functions of `nn.functional`."""
