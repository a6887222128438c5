"""An op on tensors becomes a step: recording, views that copy, several ops in one step."""
