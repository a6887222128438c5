"""The backward pass: from node to node, recording one gradient after the other."""
