"""PyTorch's `torch.distributed.elastic.multiprocessing.errors`."""

from ...._core.absent.stand_ins import leave as record

__all__ = ["record"]
