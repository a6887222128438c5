"""A user's script, which `.ci/run` gives to the type checker: it must find the installed leafax.

Where leafax is not found all is `Any`, and the comment on the last line is an error, unused.
"""

import leafax
import leafax as torch
import leafax.nn.functional as F
from leafax import Tensor
from leafax.adapters.linen import Model
from leafax.functional import partition

x: Tensor = torch.ones(2, 3, requires_grad=True)
loss: Tensor = F.relu(x @ leafax.ones(3, 4)).sum()
loss.backward()
number: float = loss.item()
model: type[Model] = Model
halves = partition({"w": x}, {"w": True})
wrong: int = loss  # type: ignore[assignment]
