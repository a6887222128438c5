"""Errors for PyTorch's names that leafax does not have."""

from typing import Any

import pytest

import leafax


@pytest.mark.parametrize(
    "module, name, said",
    [
        (leafax.optim, "SparseAdam", "there are no sparse gradients: use `leafax.optim.Adam`"),
        (leafax.nn, "quantized", "there are no quantized tensors"),
        (
            leafax.masked, "as_masked_tensor",
            "there are no masked tensors: the functions here take a `mask`",
        ),
        (
            leafax.utils, "benchmark",
            "use `timeit`, and `leafax.synchronize()` to wait for what runs",
        ),
    ],
)  # fmt: skip
def test_what_is_not_there_says_what_to_use(module: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert str(caught.value) == f"module '{module.__name__}' has no attribute '{name}': {said}"
    assert not hasattr(module, name)


@pytest.mark.parametrize("module", [leafax, leafax.nn, leafax.optim, leafax.utils, leafax.masked])
def test_what_nobody_knows_is_refused_in_pythons_words(module: Any) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(module, "no_such" + "_name")
    assert str(caught.value) == f"module '{module.__name__}' has no attribute 'no_such_name'"


def test_no_hint_is_of_what_is_there() -> None:
    from leafax._core import missing_names

    for module, hints in (
        (leafax, missing_names.TOP), (leafax.optim, missing_names.OPTIM),
        (leafax.utils, missing_names.UTILS),
        (leafax.masked, missing_names.MASKED),
        (leafax.nn, missing_names.NN),
    ):  # fmt: skip
        assert not [name for name in hints if name in vars(module)]
