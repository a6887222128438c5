from facade.nn.utils import *
