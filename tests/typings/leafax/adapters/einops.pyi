from adapters.einops import *
