"""Products of matrices, solvers and decompositions."""
