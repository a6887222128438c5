"""leafax in the place of PyTorch: `import torch` and all of `torch.*` find leafax's modules."""

from .installation import install as install
from .installation import uninstall as uninstall
