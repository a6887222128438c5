"""PyTorch's `torch.distributed._composable`."""
