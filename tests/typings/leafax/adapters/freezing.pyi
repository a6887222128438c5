from adapters.freezing import *
