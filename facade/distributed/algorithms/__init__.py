"""PyTorch's `torch.distributed.algorithms`."""
