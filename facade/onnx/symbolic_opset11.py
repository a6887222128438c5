"""PyTorch's `torch.onnx.symbolic_opset11`: a module to import; it has no symbolic functions."""
