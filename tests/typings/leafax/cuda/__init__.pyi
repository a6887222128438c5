from facade.cuda import *
