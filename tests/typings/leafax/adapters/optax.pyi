from adapters.optax import *
