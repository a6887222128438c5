"""Layers and bases of layers that PyTorch keeps in larger files."""
