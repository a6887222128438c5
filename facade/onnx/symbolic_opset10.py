"""PyTorch's `torch.onnx.symbolic_opset10`: a module to import; it has no symbolic functions."""
