"""PyTorch's `torch.onnx.symbolic_opset9`: a module to import; it has no symbolic functions."""
