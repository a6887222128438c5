from facade.autograd.graph import *
