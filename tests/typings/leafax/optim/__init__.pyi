from facade.optim import *
