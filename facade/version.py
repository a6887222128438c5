"""leafax's version, in the place of `torch.version`."""

__version__ = "0.1.0"
cuda = hip = xpu = git_version = None
debug = False
