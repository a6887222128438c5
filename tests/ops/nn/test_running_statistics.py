"""Running statistics: what is written to them where they are views, or batches of a `vmap`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same


def _images(lib: Any, *shape: int) -> Any:
    values = np.sin(np.arange(np.prod(shape), dtype=np.float64))
    return lib.tensor(values.reshape(shape).tolist(), dtype=lib.float64)


def _rounded(t: Any) -> Any:
    return np.round(np.array(t.detach().tolist()), 8).tolist()


def test_views_of_one_buffer() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        f = lib.nn.functional
        x = _images(lib, 3, 4, 5).requires_grad_()
        both = lib.cat([lib.zeros(4), lib.ones(4)]).double()
        mean, var = both[:4], both[4:]
        saved = lib.ones(8, dtype=lib.float64, requires_grad=True) * both
        out = f.batch_norm(x, mean, var, training=True)
        again = f.batch_norm(x, mean, var, training=True)
        (out * again).sum().backward()
        saved.sum().backward()
        log(_rounded(x.grad), _rounded(both), _rounded(mean), both._version, var._version)
        mean.add_(1)
        f.instance_norm(x, mean, var).sum().backward()
        log(_rounded(both), both._version, var._version)


def test_instance_norm_counts_its_writes() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x, mean, var = _images(lib, 3, 4, 5), lib.zeros(4).double(), lib.ones(4).double()
        lib.nn.functional.instance_norm(x, mean, var)
        log(mean._version, var._version)
        lib.instance_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)
        log(mean._version, var._version, _rounded(mean))
        lib.nn.functional.batch_norm(x, mean, var, training=True)
        log(mean._version, var._version, _rounded(mean))


@pytest.mark.exhaustive
def test_a_batch_of_statistics() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        f, vmap = lib.nn.functional, lib.func.vmap
        x, mean, var = _images(lib, 2, 3, 4, 5), lib.zeros(2, 4).double(), lib.ones(2, 4).double()
        weight = lib.ones(2, 4, dtype=lib.float64, requires_grad=True)

        def norm(x: Any, mean: Any, var: Any, *weight: Any) -> Any:
            return f.batch_norm(x, mean, var, *weight, training=True)

        out = vmap(norm)(x, mean, var, weight)
        (vmap(norm)(x, mean, var, weight) * out).sum().backward()
        log(_rounded(out), _rounded(mean), _rounded(var), _rounded(weight.grad))
        vmap(vmap(norm))(x[None], mean[None], var[None])
        log(_rounded(mean), _rounded(var))
        log.attempt(vmap(norm, (0, None, 0)), x, mean[0], var)
        log.attempt(vmap(norm, (0, 0, None)), x, mean, var[0])
        log(_rounded(vmap(norm, (None, None, None, 0))(x[0], mean[0], var[0], weight)))
        log(_rounded(mean))


def test_group_norm_of_images_in_vmap() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        warnings.filterwarnings("ignore", "There is a performance drop")
        f, vmap, x = lib.nn.functional, lib.func.vmap, _images(lib, 2, 3, 4, 2, 2)
        weight = _images(lib, 2, 4)
        log(_rounded(vmap(lambda x: f.group_norm(x, 2))(x)))
        log(_rounded(vmap(lambda x, w: f.group_norm(x, 2, w, w))(x, weight)))
        log(_rounded(vmap(lambda x: lib.group_norm(x, 2))(x)))
