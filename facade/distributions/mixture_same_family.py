"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from .. import Size, gather, log_softmax, logsumexp
from .. import sum as _sum
from .._core.grad_modes import no_grad
from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Draw from one of the components, the last dimension of their batch, chosen by chance."""

    arg_constraints: dict[str, Any] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        of_mixture = mixture_distribution.batch_shape
        of_components = component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(of_mixture), reversed(of_components), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({of_mixture}) is not compatible with "
                    f"`component_distribution.batch_shape`({of_components})"
                )
        wanted = mixture_distribution.logits.shape[-1]
        given = component_distribution.batch_shape[-1]
        if wanted != given:
            raise ValueError(
                f"`mixture_distribution component` ({wanted}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({given})"
            )
        self._num_component = wanted
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(of_components, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        batch_shape = Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(
            batch_shape + (self._num_component,)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        return self._begun(new, batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """The distribution of the component's index."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The distributions of the components."""
        return self._component_distribution

    def _mixed(self, of_components: Any) -> Any:
        """The mean over the components, by their probabilities."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return _sum(probs * of_components, dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self) -> Any:
        # The law of total variance.
        off = self.component_distribution.mean - self._pad(self.mean)
        return self._mixed(self.component_distribution.variance) + self._mixed(off.pow(2.0))

    def cdf(self, x: Any) -> Any:
        cdfs = self.component_distribution.cdf(self._pad(x))
        return _sum(cdfs * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Any) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        log_probs = self.component_distribution.log_prob(self._pad(x))
        weights = log_softmax(self.mixture_distribution.logits, dim=-1)
        return logsumexp(log_probs + weights, dim=-1)

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            event = self.event_shape
            index = chosen.reshape(chosen.shape + Size([1] * (len(event) + 1)))
            index = index.repeat(Size([1] * (chosen.dim() + 1)) + event)
            return gather(drawn, dim, index).squeeze(dim)

    def _pad(self, x: Any) -> Any:
        """A value with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Any) -> Any:
        """Probabilities in the shape of the components' batch and event."""
        own = len(self.mixture_distribution.batch_shape)
        missing = 0 if own == 1 else len(self.batch_shape) - own
        shape = x.shape
        ones = Size([1] * missing), Size([1] * self._event_ndims)
        return x.reshape(shape[:-1] + ones[0] + shape[-1:] + ones[1])

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
