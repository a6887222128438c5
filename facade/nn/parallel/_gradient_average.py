"""The average of gradients over the processes of a group, after each backward pass.

PyTorch sends buckets of gradients while the pass goes on. Here the pass is recorded first; when it
is over it runs, and one further program brings the gradients together. It takes in gradients of
the module's parameters alone, so it is the same in all processes, whatever else each one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.processes.collectives import reduce_arrays
from ..._core.processes.group import ProcessGroup
from ..._core.trie import local
from ..._runtime.observation import observe
from ..._runtime.placing import place_beside
from ..._tracing.inputs import from_array

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This "
    "error indicates that your module has parameters that were not used in producing loss. You can "
    "enable unused parameter detection by passing the keyword argument "
    "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \n"
    "making sure all `forward` function outputs participate in calculating loss. \n"
    "If you already have done the above, then the distributed data parallel module wasn't able to "
    "locate the output tensors in the return value of your module's `forward` function. Please "
    "include the loss function and the structure of the return value of `forward` of your module "
    "when reporting this issue (e.g. list, dict, iterable).\n"
    "Parameter indices which did not receive grad for rank {rank}: {indices}\n"
    " In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or "
    "DETAIL to print out information about which particular parameters did not receive gradient on "
    "this rank as part of this error"
)


class GradientAverage:
    """The gradients of parameters, averaged over processes where a forward pass asked for it.

    Args:
      parameters: those that are trained.
      group: the processes.
      unused: parameters may go without a gradient.
    """

    def __init__(self, parameters: Iterable[Any], group: ProcessGroup, unused: bool) -> None:
        self.parameters = list(parameters)
        self._group = group
        self._unused = unused
        self._expected = False
        self._arrived: set[int] = set()
        self._missing: list[int] = []
        for i, p in enumerate(self.parameters):
            p.register_post_accumulate_grad_hook(lambda _, i=i: self._note(i))

    def expect(self) -> None:
        """Average the gradients that the next backward pass gives.

        Raises:
          RuntimeError: after the last pass parameters had none, and that was not announced.
        """
        if self._missing:
            indices = " ".join(map(str, self._missing))
            raise RuntimeError(_UNFINISHED.format(rank=self._group.rank(), indices=indices))
        self._expected = True

    def _note(self, i: int) -> None:
        if not self._expected:
            return
        if not self._arrived:
            local.autograd.tasks[-1].callbacks.append(self._finish)
        self._arrived.add(i)

    def _finish(self) -> None:
        arrived, self._arrived, self._expected = self._arrived, set(), False
        absent = [i for i in range(len(self.parameters)) if i not in arrived]
        if absent and not self._unused:
            self._missing = absent
            return
        chosen = list(range(len(self.parameters)))
        if self._unused:
            used = np.zeros(len(self.parameters), np.int32)
            used[sorted(arrived)] = 1
            (anywhere,) = reduce_arrays(self._group, [used], "MAX", "DistributedDataParallel")
            chosen = [i for i in chosen if anywhere[i]]
        average_gradients([self.parameters[i] for i in chosen], self._group)


def average_gradients(parameters: Sequence[Any], group: ProcessGroup) -> None:
    """Replace the gradients of parameters by their averages over the processes."""
    arrays = []
    for p in parameters:
        if p._grad is None:  # it was used in another process
            with jax.enable_x64(True):
                zeros = jnp.zeros(tuple(p.shape), p._v.dtype)
            p.grad = place_beside(p, from_array(zeros))  # split there, it is reduced by parts
        arrays.append(observe(p._grad, "jax()"))
    averages = reduce_arrays(group, arrays, "AVG", "DistributedDataParallel")
    for p, average in zip(parameters, averages, strict=True):
        p._grad.data = from_array(average)
