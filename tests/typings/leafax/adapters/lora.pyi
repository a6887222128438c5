from adapters.lora import *
