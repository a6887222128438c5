"""The graphs, memory and hooks of functions that PyTorch makes of several ops."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import same
from helpers.tensors import numbers

SOURCES = """
fft.fft(x) fft.ifft(x) fft.rfft(x) fft.ihfft(x) fft.irfft(x) fft.hfft(x) fft.fft2(x) fft.ifft2(x)
fft.rfft2(x) fft.ihfft2(x) fft.irfft2(x) fft.hfft2(x) fft.fftn(x) fft.ifftn(x) fft.hfftn(x)
fft.ihfftn(x,dim=0) fft.fft(x,n=5) fft.rfft(x,n=2,dim=0) fft.fft2(x,s=(3,-1)) fft.fft(z,dim=0)
fft.ifft(z.t(),dim=0,norm="ortho") fft.rfft(x,dim=0,norm="forward") fft.irfft(z,5,dim=0)
fft.hfft(z,n=3) fft.hfftn(z,s=(4,),dim=(0,)) fft.irfftn(z.t(),norm="ortho")
fft.fftn(x[None].expand(2,2,3),dim=(0,2)) fft.rfftn(x[None].expand(2,2,3),dim=(0,1))
fft.fft(n) fft.fft2(n,norm="forward") torch.diff(x,n=0) torch.linalg.matrix_power(x@x.mT,0)
torch.diagflat(x) torch.diagflat(x.t(),1) torch.logdet(x@x.mT) torch.logdet(z@z.mH)
torch.linalg.svdvals(x) torch.linalg.svdvals(z) torch.linalg.eigvalsh(x@x.mT)
torch.linalg.eigvals(x@x.mT) torch.linalg.cond(x)
torch.linalg.vander(n,N=4) torch.vander(n[0],4,True) F.soft_margin_loss(x,x.detach().sign())
F.max_unpool1d(*F.max_pool1d(x,1,return_indices=True),1) F.prelu(x,x[0]) F.prelu(x,x[0,:1])
F.max_unpool3d(*F.max_pool3d(x[None],1,return_indices=True),1) F.prelu(x[0],x[0,0])
F.group_norm(x[None],1) F.group_norm(x,1,x[0],x[1]) torch.group_norm(x,3)
F.batch_norm(x,None,None,x[0],x[1],True) torch.native_layer_norm(x,(3,),None,None,1e-5)
F.multilabel_margin_loss(x,torch.zeros(2,3,dtype=torch.int64))

""".split()


def _hooked(lib: Any, see: Any, out: Any) -> None:
    node = out.grad_fn
    node.register_prehook(lambda grads: see(len(grads), [g is None for g in grads]))
    node.register_hook(lambda to, of: see([g is None for g in to], len(of)))
    out.backward(lib.ones_like(out))


POWERS = ("torch.linalg.vander(x)", "torch.vander(x[0])")  # PyTorch cannot differentiate the latter


@pytest.mark.parametrize("source", POWERS)
def test_graph_of_powers(source: str) -> None:
    def program(lib: Any, see: Any) -> None:
        out = eval(source, {"torch": lib, "x": numbers(lib, 2, 3, requires_grad=True)})
        see(_walked(out.grad_fn), out.stride(), out._version, out.detach())

    same(program)


@pytest.mark.quick(9)
@pytest.mark.parametrize("source", SOURCES)
def test_graph(source: str) -> None:
    """Names and edges, strides, flags, what hooks of the node see, and the gradients."""

    def program(lib: Any, see: Any) -> None:
        leaf = numbers(lib, 2, 3, requires_grad=True)
        x = leaf * 1
        z = lib.complex(x, x.cos())
        n = lib.tensor([[1, 2, 3], [4, 0, 1]])
        space = {"torch": lib, "fft": lib.fft, "F": lib.nn.functional, "x": x, "z": z, "n": n}
        out = eval(source, space)
        see(_walked(out.grad_fn), out.output_nr, out.stride(), out.is_conj(), out._is_view())
        see(out.dtype, out._version, out.detach().resolve_conj())
        if out.grad_fn is not None:
            _hooked(lib, see, out)
            see.gradients(leaf.grad)

    same(program)


def _walked(node: Any) -> Any:
    if node is None:
        return None
    edges = [(_walked(n), k) for n, k in node.next_functions]
    return [node.name(), len(node._input_metadata), *edges]


GROUPS = (
    "(x, 4)", "(x[0, 0], 2)", "(x, 2, x[0, :4, 0])", "(x, 2, x[0, :, 0], x[0, :4, 0])", "(x, 0)",
    "(x, -2)", "(x[:1, :, 0], 6)", "(x.long(), 2)", "(x, 2, x[0, :, 0].float())",
)  # fmt: skip


@pytest.mark.parametrize("given", GROUPS)
def test_errors_of_group_norm(given: str) -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(36.0, dtype=lib.float64).view(2, 6, 3)
        see.attempt(lambda: lib.nn.functional.group_norm(*eval(given, {"x": x})))

    same(program)


KERNELS = ("_fft_c2c(x, (0,), 0, True)", "_fft_r2c(z, (0,), 0, True)", "_fft_c2r(x, (0,), 0, 3)")


@pytest.mark.parametrize("call", KERNELS)
def test_kernels_of_transforms_want_their_kind_of_numbers(call: str) -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.ones(2, 3)
        see.attempt(lambda: eval(f"lib.{call}", {"lib": lib, "x": x, "z": lib.complex(x, x)}))

    same(program)
