from adapters.linen import *
