from facade.distributions import *
