"""Random draws and constant tensors."""
