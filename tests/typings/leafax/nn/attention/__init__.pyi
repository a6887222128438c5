from facade.nn.attention import *
