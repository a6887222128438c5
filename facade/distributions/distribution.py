"""The base class of all distributions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .. import Size
from .._core.grad_modes import no_grad
from .._core.handle import Handle
from . import constraints
from ._families.validation import validate
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """Be a probability distribution, or a batch of independent ones.

    Parameters and samples are validated without cutting the program: see `_families/validation.py`.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    _data: Any = None  # what NumPy knows of a parameter that is computed from what is at rest

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions validate their arguments if they are not told."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = Size(), event_shape: Any = Size(),  # noqa: B008
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()

    def _check_arguments(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for param, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if param not in self.__dict__ and isinstance(getattr(type(self), param), lazy_property):
                continue
            validate(self, getattr(self, param), constraint, param, self._data)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return this distribution with its batch expanded to `batch_shape`."""
        raise NotImplementedError

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a single sample."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """Constraints by name of parameter."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The mode."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        """Draw samples, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        """Draw samples that gradients flow through to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """Draw `n` samples."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            category=FutureWarning, stacklevel=2,
        )  # fmt: skip
        return self.sample(Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """Return the probability of samples up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """Return the quantile at probability `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values of a discrete distribution, along the first dimension.

        Args:
          expand: over the batch, else its dimensions are of size 1.
        """
        raise NotImplementedError

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:  # noqa: B008
        """The shape of samples: those asked for, then the batch, then the event."""
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        return Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raise unless `value` has the right shape and lies within the support."""
        if not isinstance(value, Handle):
            raise ValueError("The value argument to log_prob must be a Tensor")
        actual: Any = value.size()  # type: ignore[attr-defined]
        if actual[len(actual) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {actual} vs "
                f"{self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {actual} vs "
                    f"{expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. "
                "Please initialize the distribution with `validate_args=False` to turn off "
                "validation.",
                stacklevel=2,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        validate(self, value, support, None)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A bare instance to expand into; refuse subclasses whose `__init__` is their own."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(
        self, cls: type, batch_shape: Any, instance: Any, *names: str,
        trailing: Sequence[int] = (),
    ) -> Any:  # fmt: skip
        """This distribution with its batch and the named parameters expanded.

        Args:
          cls: the class whose `expand` this is.
          names: parameters; those that were not given to this distribution are left out.
          trailing: the shape of each of them after the batch.
        """
        new = self._get_checked_instance(cls, instance)
        batch_shape = Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape + tuple(trailing)))
        return self._begun(new, batch_shape)

    def _begun(self, new: Any, batch_shape: Any) -> Any:
        """Give an expanded instance its shapes; its arguments were validated before."""
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self) -> str:
        params = [(k, self.__dict__[k]) for k in self.arg_constraints if k in self.__dict__]
        shown = ", ".join(f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in params)
        return f"{self.__class__.__name__}({shown})"


def batch_shape_of(*given: Any, expanded: Any) -> Size:
    """The batch shape of parameters: none if all were given as numbers."""
    return expanded.size() if any(isinstance(x, Handle) for x in given) else Size()
