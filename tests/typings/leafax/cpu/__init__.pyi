from facade.cpu import *
