"""PyTorch's `torch.distributed.elastic`."""
