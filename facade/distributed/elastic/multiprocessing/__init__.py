"""PyTorch's `torch.distributed.elastic.multiprocessing`."""
