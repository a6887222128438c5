"""Names inside of PyTorch that packages use answer as PyTorch's do."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch

import leafax


def module(name: str) -> Any:
    return importlib.import_module(f"leafax.{name}")


def test_indices_of_sparse_matrices_are_told_both_ways() -> None:
    def told(lib: Any) -> list[Any]:
        rows, columns = lib.tensor([0, 0, 2, 2, 2, 5]), lib.arange(6)
        begins = lib._convert_indices_from_coo_to_csr(rows, 7, out_int32=True)
        found = [
            begins,
            lib._convert_indices_from_coo_to_csr(rows[:0], 2),
            lib._convert_indices_from_csr_to_coo(begins, columns, out_int32=True),
            lib._convert_indices_from_csr_to_coo(begins.long(), columns, transpose=True),
        ]
        return [(t.tolist(), str(t.dtype)) for t in found]

    assert told(leafax) == told(torch)


def test_numbers_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_bytes(bytes(range(16)))
    name = str(tmp_path / "numbers")
    for options in ({"size": 3, "dtype": "int32"}, {"size": 2, "dtype": "float32"}, {"size": 0}):
        made = []
        for lib in (leafax, torch):
            dtype = getattr(lib, str(options.get("dtype", "int8")))
            made.append(lib.from_file(name, shared=False, size=options["size"], dtype=dtype))
        assert made[0].tolist() == made[1].tolist() and str(made[0].dtype) == str(made[1].dtype)
    for lib in (leafax, torch):
        with pytest.raises(RuntimeError, match="size <16> is smaller than the required mapping"):
            lib.from_file(name, size=5)
    with pytest.raises(NotImplementedError, match="does not get into the file"):
        leafax.from_file(name, shared=True, size=1)


def test_blocks_of_packages_decorate_functions() -> None:
    def seen_by(lib: str) -> list[str]:
        blocks = importlib.import_module(f"{lib}.utils._contextlib")
        log: list[str] = []

        class Named(blocks._DecoratorContextManager):  # type: ignore[misc,name-defined]
            def __init__(self, name: str) -> None:
                self.name = name

            def clone(self) -> Any:
                return type(self)(self.name)

            def __enter__(self) -> None:
                log.append(f"in {self.name}")

            def __exit__(self, *exc: object) -> None:
                log.append(f"out {self.name}")

        class Plain(blocks._NoParamDecoratorContextManager):  # type: ignore[misc,name-defined]
            def __enter__(self) -> None:
                log.append("in")

            def __exit__(self, *exc: object) -> None:
                log.append("out")

        @Named("a")
        def count() -> Any:
            log.append("first")
            yield 1
            log.append("second")
            yield 2

        @Plain
        def f(x: int) -> int:
            return x

        log.extend(map(str, [*count(), f(3)]))
        with Plain(), pytest.raises(NotImplementedError):
            blocks._DecoratorContextManager().__enter__()
        return log

    assert seen_by("leafax") == seen_by("torch")


def test_dictionaries_by_identity_forget_keys_that_are_gone() -> None:
    def seen(lib: Any, weak: Any) -> list[Any]:
        a, b = lib.ones(2), lib.ones(2)
        d = weak.WeakIdKeyDictionary({a: 1})
        d[b] = 2
        log: list[Any] = [len(d), d[a], d[b], lib.ones(2) in d, 3 in d, d.setdefault(a, 7)]
        log += [d == d.copy(), d == {a: 1}, sorted((d | {a: 5}).values()), d.get(lib.ones(1), 4)]
        reference, held = weak.WeakIdRef(a), weak.TensorWeakRef(a)
        log += [reference == weak.WeakIdRef(a), reference == weak.WeakIdRef(b), held() is a]
        del a
        log += [len(d), list(d.values()), reference(), held(), d.popitem()[1], len(d)]
        with pytest.raises(KeyError):
            d[b]
        with pytest.raises(AssertionError, match="expected torch.Tensor, got <class 'int'>"):
            weak.TensorWeakRef(1)
        return log

    theirs = seen(torch, importlib.import_module("torch.utils.weak"))
    assert seen(leafax, module("utils.weak")) == theirs


def test_a_tensor_of_a_module_is_exchanged_by_its_name() -> None:
    def seen(lib: Any, home: Any) -> list[Any]:
        layer = lib.nn.BatchNorm1d(2)
        layer.plain = lib.zeros(1)
        log: list[Any] = []
        for name in ("weight", "running_mean", "plain"):
            before = getattr(layer, name)
            new = lib.full((2,), 3.0)
            log += [home.swap_tensor(layer, name, new) is before, getattr(layer, name) is new]
        log += [sorted(layer._parameters), list(layer._buffers)]
        for arguments in (("a.b", None), ("", None), ("none", None), ("weight", 3), ("eps", None)):
            with pytest.raises((KeyError, AttributeError, TypeError)) as caught:
                home.swap_tensor(layer, *arguments)
            log.append((type(caught.value), str(caught.value)))
        home.set_tensor(layer, "weight", None)
        return [*log, layer.weight]

    theirs = seen(torch, importlib.import_module("torch.nn.utils._named_member_accessor"))
    assert seen(leafax, module("nn.utils._named_member_accessor")) == theirs


def test_tensors_within_vmap_are_told_from_others() -> None:
    home = module("_C._functorch")
    seen = []

    def f(x: Any) -> Any:
        seen.append((home.is_batchedtensor(x), tuple(home.get_unwrapped(x).shape)))
        return x.sin()

    leafax.func.vmap(f)(leafax.ones(3, 2))
    assert seen == [(True, (3, 2))] and not home.is_batchedtensor(leafax.ones(3))


NAMES_TO_IMPORT = """
serialization.DEFAULT_PROTOCOL utils.data.dataloader._collate_fn_t nn.parameter._ParameterMeta
nn.init._no_grad_normal_ _functorch.vmap._maybe_remove_batch_dim
distributed._tensor.experimental.implicit_replication distributed._tensor.placement_types.Shard
_utils._get_available_device_type
""".split()


@pytest.mark.parametrize("name", NAMES_TO_IMPORT)
def test_names_that_packages_import_are_there(name: str) -> None:
    path, _, short = name.rpartition(".")
    assert hasattr(module(path), short) and hasattr(importlib.import_module(f"torch.{path}"), short)


def test_modules_of_devices_are_found_by_name() -> None:
    assert module("_utils")._get_device_module("cuda") is leafax.cuda
    for home in (module("_utils"), importlib.import_module("torch._utils")):
        with pytest.raises(RuntimeError, match="^Device 'no' does not have a corresponding mod"):
            home._get_device_module("no")
