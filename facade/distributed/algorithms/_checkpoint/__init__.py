"""PyTorch's `torch.distributed.algorithms._checkpoint`."""
