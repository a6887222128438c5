"""Ops that programs define: their schemas, implementations and gradients."""
