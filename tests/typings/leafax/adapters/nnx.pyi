from adapters.nnx import *
