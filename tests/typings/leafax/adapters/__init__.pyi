from adapters import freeze as freeze
from adapters import groups as groups
from adapters import layerwise_groups as layerwise_groups
from adapters import mask as mask
from adapters import summary as summary
from adapters import unfreeze as unfreeze
from adapters import watch as watch
