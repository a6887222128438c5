from facade.nn import *
