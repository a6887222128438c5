from adapters.orbax import *
