"""State dicts by plain names, beside PyTorch's, of wrapped modules and their optimizers."""

from typing import Any

import pytest
import torch
from torch.distributed.checkpoint import state_dict as theirs

import leafax
from leafax.distributed.checkpoint import state_dict as mine

PAIRS = ((leafax, mine), (torch, theirs))


def trained(t: Any) -> tuple[Any, Any]:
    """Return a model that was compiled, whose first layer is frozen, and its optimizer."""
    model = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.Linear(2, 1)).double()
    with t.no_grad():
        for n, p in enumerate(model.parameters()):
            p.copy_(t.arange(p.numel(), dtype=t.float64).reshape(p.shape) / 8 + n)
    model[0].requires_grad_(False)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = t.optim.SGD(trained, lr=0.1, momentum=0.9)
    model(t.ones(2, 3, dtype=t.float64)).sum().backward()
    optimizer.step()
    return model, optimizer


def as_numbers(x: Any) -> Any:
    """Replace tensors by lists."""
    if isinstance(x, dict):
        return {k: as_numbers(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [as_numbers(v) for v in x]
    return x.tolist() if hasattr(x, "tolist") else x


@pytest.mark.parametrize("options", [{}, {"full_state_dict": True}, {"ignore_frozen_params": True}])
def test_state_dicts_are_pytorchs(options: dict[str, bool]) -> None:
    found = []
    for t, names in PAIRS:
        model, optimizer = trained(t)
        settings = names.StateDictOptions(**options)
        wrapped = t.compile(model, backend="eager")
        weights = names.get_model_state_dict(wrapped, options=settings)
        state = names.get_optimizer_state_dict(model, optimizer, options=settings)
        found.append([as_numbers(weights), as_numbers(state)])
    for group in (*found[0][1]["param_groups"], *found[1][1]["param_groups"]):
        group.pop("decoupled_weight_decay", None)
    assert found[0] == found[1]


def test_names_of_wrappers_are_left_out_and_those_of_users_are_not() -> None:
    leafax.distributed.init_process_group("gloo", world_size=1, rank=0)
    try:
        own = leafax.nn.Sequential()
        own.module = leafax.nn.Linear(2, 1)
        model = leafax.nn.Sequential(leafax.nn.parallel.DistributedDataParallel(own))
        found = mine.get_model_state_dict(model)
        assert list(found) == ["0.module.weight", "0.module.bias"]
        assert list(model.state_dict()) == ["0.module.module.weight", "0.module.module.bias"]
        assert not mine.set_model_state_dict(model, found).missing_keys
    finally:
        leafax.distributed.destroy_process_group()


def test_state_dicts_are_loaded() -> None:
    model, optimizer = trained(leafax)
    weights, state = mine.get_state_dict(model, optimizer)
    weights = {n: t.clone() for n, t in weights.items()}
    other, again = trained(leafax)
    other(leafax.ones(2, 3, dtype=leafax.float64)).sum().backward()
    again.step()
    found = mine.set_state_dict(
        leafax.compile(other), again, model_state_dict=weights, optim_state_dict=state
    )
    assert not found.missing_keys and not found.unexpected_keys
    assert as_numbers(dict(other.state_dict())) == as_numbers(weights)
    assert as_numbers(again.state_dict()) == as_numbers(optimizer.state_dict())
    with pytest.raises(NotImplementedError, match="no flat state dicts of optimizers"):
        mine.get_optimizer_state_dict(
            model, optimizer, options=mine.StateDictOptions(flatten_optimizer_state_dict=True)
        )
