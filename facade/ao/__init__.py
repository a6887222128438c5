"""PyTorch's `torch.ao`: quantization alone, which leafax has not."""
