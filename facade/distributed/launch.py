"""PyTorch's `torch.distributed.launch`: an older name of `torch.distributed.run`."""

from .run import main as main
from .run import run as run

if __name__ == "__main__":
    main()
