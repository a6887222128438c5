from adapters.weights import *
