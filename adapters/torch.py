"""PyTorch's files, without PyTorch.

`load_checkpoint` reads what `torch.save` wrote: it runs no code of the file and imports no torch.
"""

from ._unpickle import load_checkpoint as load_checkpoint
