from facade.func import *
