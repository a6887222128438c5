from facade.autograd import *
