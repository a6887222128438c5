from adapters.safetensors import *
