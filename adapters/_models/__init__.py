"""Facts of models of any kind: tensors by path, freezing, groups, summaries."""
