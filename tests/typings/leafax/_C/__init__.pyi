from facade._C import *
