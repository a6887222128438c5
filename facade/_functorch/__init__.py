"""Where PyTorch keeps the code of `torch.func`; packages import some of it."""
