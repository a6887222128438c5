"""Write what users of leafax 0.1.0 pickled and saved, for later releases to load.

python tests/make_pickles.py

An archive entry is made by a builder of `BUILDERS`; `files/test_old_pickles.py` compares what an
entry holds with what its builder makes today. Run this with the release whose files are meant:
written anew by a later one, the archive says nothing about the earlier.
"""

from __future__ import annotations

import ast
import importlib
import io
import pickle
import pkgutil
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import flax
import jax
import numpy as np

import leafax
from leafax import distributions as dist
from leafax import nn, optim
from leafax._core.missing_names import LATER_NAMES
from leafax.adapters import freezing, linen, lora, nnx
from leafax.autograd.gradcheck import GradcheckError
from leafax.nn import functional as F
from leafax.nn.attention import flex_attention as flex
from leafax.nn.utils import parametrizations, parametrize, prune, rnn
from leafax.utils import data

PATH = Path(__file__).parent / "files" / "pickles_of_0_1_0.zip"
PROTOCOL = 4  # the default of Python 3.11


class Built(NamedTuple):
    """A way to make an object, and results to compare beside its parts.

    Attributes:
      make: the builder.
      use: a function of the object whose result an old one must share; it may change the object.
    """

    make: Callable[[], Any]
    use: Callable[[Any], Any] | None = None


BUILDERS: dict[str, Built] = {}


def _add(name: str, make: Callable[[], Any], use: Callable[[Any], Any] | None = None) -> None:
    assert name not in BUILDERS, name
    BUILDERS[name] = Built(make, use)


def _numbers(*shape: int) -> Any:
    """Numbers that no random generator and no backend decides."""
    n = int(np.prod(shape))
    return (np.arange(n, dtype=np.float32).reshape(shape) - n // 2) / 8


def _tensor(*shape: int) -> Any:
    return leafax.from_numpy(_numbers(*shape))


def _filled(module: Any) -> Any:
    """A module whose parameters and buffers do not depend on a draw."""
    with leafax.no_grad():
        for _, t in [*module.named_parameters(), *module.named_buffers()]:
            if t.is_floating_point():
                t.copy_(_tensor(*t.shape).abs() / 4 + 0.125)
    return module


# ---------------------------------------------------------------- tensors and facts about them


def _with_grad() -> Any:
    x = _tensor(2, 3).requires_grad_()
    (x * x).sum().backward()
    return x


def _with_attribute() -> Any:
    x = _tensor(2)
    x.note = "mine"
    return x


def _tied() -> Any:
    w = nn.Parameter(_tensor(2, 2))
    return {"w": w, "again": [w, w.detach()], "size": w.shape}


def _generator() -> Any:
    g = leafax.Generator().manual_seed(7)
    leafax.rand(3, generator=g)
    return g


def _storage() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # typed ones are deprecated
        return _tensor(4).storage()


def _tensors() -> None:
    _add("tensor", lambda: _tensor(2, 3))
    _add("tensor/scalar", lambda: leafax.tensor(2.5))
    _add("tensor/empty", lambda: leafax.empty(0, 3))
    _add("tensor/leaf", lambda: _tensor(2, 3).requires_grad_())
    _add("tensor/with grad", _with_grad)
    _add("tensor/view", lambda: _tensor(4, 3)[1:3, ::2])
    _add("tensor/transposed", lambda: _tensor(4, 3).t())
    _add("tensor/channels last", lambda: _tensor(1, 2, 3, 3).to(
        memory_format=leafax.channels_last))  # fmt: skip
    _add("tensor/conjugated", lambda: leafax.tensor([1 + 2j, 3 - 1j]).conj())
    _add("tensor/with attribute", _with_attribute)
    for name in (
        "float64 float16 bfloat16 complex64 complex128 uint8 int8 int16 int32 int64 bool uint16"
    ).split():
        kind = getattr(leafax, name)
        _add(f"tensor/{name}", lambda kind=kind: leafax.tensor([0, 1, 3]).to(kind))
    _add("parameter", lambda: nn.Parameter(_tensor(2, 3)))
    _add("parameter/frozen", lambda: nn.Parameter(_tensor(3, 2).t(), requires_grad=False))
    _add("parameter/uninitialized", lambda: nn.UninitializedParameter())
    _add("buffer/uninitialized", lambda: nn.UninitializedBuffer())
    _add("buffer", lambda: nn.Buffer(_tensor(2)))
    _add("tied tensors", _tied)
    _add(
        "dtypes",
        lambda: [
            v
            for name, v in sorted(vars(leafax).items())
            if isinstance(v, leafax.dtype) and name not in LATER_NAMES
        ],
    )
    _add("device", lambda: [leafax.device("cpu"), leafax.device("cpu", 0), leafax.device("cuda:1")])
    _add("size", lambda: [leafax.Size([2, 3]), _tensor(2, 1).shape, leafax.Size()])
    _add("layout", lambda: [leafax.strided, _tensor(2).layout])
    _add("memory format", lambda: [leafax.contiguous_format, leafax.channels_last,
                                   leafax.channels_last_3d, leafax.preserve_format])  # fmt: skip
    _add("generator", _generator, lambda g: (g.initial_seed(), leafax.rand(4, generator=g)))
    _add("generator state", lambda: _generator().get_state())
    _add("finfo", lambda: [leafax.finfo(leafax.bfloat16), leafax.iinfo(leafax.int8)])
    x = _tensor(3, 2)
    for name, call in {
        "max": lambda: x.max(0), "sort": lambda: x.sort(1), "topk": lambda: x.topk(1),
        "median": lambda: x.median(0), "mode": lambda: x.mode(0), "cummax": lambda: x.cummax(0),
        "qr": lambda: leafax.linalg.qr(leafax.eye(2)), "aminmax": lambda: x.aminmax(dim=0),
        "slogdet": lambda: leafax.linalg.slogdet(leafax.eye(2)),
        "svd": lambda: leafax.linalg.svd(leafax.eye(2)),
        "histogram": lambda: leafax.histogram(x.flatten(), 2),
        "frexp": lambda: leafax.frexp(x),
    }.items():  # fmt: skip
        _add(f"return type/{name}", call)
    _add("storage", _storage)
    _add("untyped storage", lambda: _tensor(4).untyped_storage())


# ---------------------------------------------------------------- nn


def _net() -> Any:
    return _filled(nn.Sequential(OrderedDict(
        conv=nn.Conv2d(1, 2, 3, padding=1), norm=nn.BatchNorm2d(2), act=nn.ReLU(),
        pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), drop=nn.Dropout(0.1),
        out=nn.Linear(2, 2),
    ))).eval()  # fmt: skip


def _frozen() -> Any:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    return freezing.freeze(_filled(net), "0", "1", stats=True)


def _averaged() -> Any:
    net = _filled(nn.Linear(2, 2))
    averaged = optim.swa_utils.AveragedModel(net)
    averaged.update_parameters(net)
    return averaged


def _packed() -> Any:
    return rnn.pack_padded_sequence(_tensor(3, 2, 1), leafax.tensor([3, 2]))


def _pruned() -> Any:
    module = _filled(nn.Linear(3, 2))
    prune.l1_unstructured(module, "weight", 2)
    return module


def _forward(*shape: int) -> Callable[[Any], Any]:
    return lambda module: module(_tensor(*shape))


def _modules() -> None:
    _add("module/net", _net, _forward(2, 1, 4, 4))
    _add("module/state dict", lambda: _net().state_dict())
    kinds: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
        "linear": (lambda: nn.Linear(3, 2), (2, 3)),
        "identity": (lambda: nn.Identity(), (2,)),
        "list": (lambda: nn.ModuleList([nn.ReLU(), nn.Linear(1, 1)]), ()),
        "dict": (lambda: nn.ModuleDict({"a": nn.GELU(), "b": nn.Tanh()}), ()),
        "parameters": (lambda: nn.ParameterList([nn.Parameter(_tensor(2)), _tensor(1)]), ()),
        "named parameters": (lambda: nn.ParameterDict({"a": nn.Parameter(_tensor(2))}), ()),
        "conv1d": (lambda: nn.Conv1d(1, 2, 3, padding="same", padding_mode="circular"), (1, 1, 4)),
        "transposed": (lambda: nn.ConvTranspose2d(1, 1, 2), (1, 1, 2, 2)),
        "embedding": (lambda: nn.Embedding(4, 2, padding_idx=0), ()),
        "bag": (lambda: nn.EmbeddingBag(4, 2, mode="sum"), ()),
        "layer norm": (lambda: nn.LayerNorm(3), (2, 3)),
        "rms norm": (lambda: nn.RMSNorm(3), (2, 3)),
        "group norm": (lambda: nn.GroupNorm(2, 4), (1, 4, 2)),
        "instance norm": (lambda: nn.InstanceNorm1d(2, affine=True), (1, 2, 3)),
        "pools": (lambda: nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(1), nn.LPPool2d(2, 1),
                                        nn.Upsample(scale_factor=2)), (1, 1, 4, 4)),
        "pads": (lambda: nn.Sequential(nn.ZeroPad2d(1), nn.ReflectionPad2d(1),
                                       nn.ConstantPad2d(1, 2.0)), (1, 1, 2, 2)),
        "activations": (lambda: nn.Sequential(
            nn.PReLU(), nn.LeakyReLU(), nn.ELU(), nn.SiLU(), nn.Softmax(1), nn.LogSoftmax(1),
            nn.Hardtanh(), nn.Softplus(), nn.Threshold(0.1, 20.0), nn.Softshrink()), (2, 3)),
        "transformer": (lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 4, dropout=0.0, activation="gelu", batch_first=True),
            1), (1, 2, 4)),
        "relu layer": (lambda: nn.TransformerEncoderLayer(4, 2, 4, dropout=0.0), (2, 1, 4)),
        "decoder layer": (lambda: nn.TransformerDecoderLayer(4, 2, 4, activation=F.relu), ()),
        "attention": (lambda: nn.MultiheadAttention(4, 2), ()),
        "lstm": (lambda: nn.LSTM(2, 3, num_layers=2, bidirectional=True), (2, 1, 2)),
        "gru": (lambda: nn.GRU(2, 2), (2, 1, 2)),
        "cell": (lambda: nn.GRUCell(2, 2), (1, 2)),
        "bilinear": (lambda: nn.Bilinear(2, 2, 1), ()),
        "adaptive softmax": (lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 6, [2, 4]), ()),
        "data parallel": (lambda: nn.DataParallel(nn.Linear(2, 1)), (3, 2)),
    }  # fmt: skip
    for name, (make, shape) in kinds.items():
        _add(f"module/{name}", lambda make=make: _filled(make()).eval(),
             _forward(*shape) if shape else None)  # fmt: skip
    _add("module/lazy", lambda: nn.LazyLinear(2))
    _add("module/losses", lambda: [
        nn.MSELoss(), nn.CrossEntropyLoss(_tensor(3).abs(), label_smoothing=0.1), nn.NLLLoss(),
        nn.BCEWithLogitsLoss(pos_weight=_tensor(2).abs()), nn.HuberLoss(), nn.KLDivLoss(),
        nn.CosineEmbeddingLoss(), nn.TripletMarginWithDistanceLoss(
            distance_function=F.pairwise_distance), nn.CTCLoss(),
    ])  # fmt: skip
    _add("module/weight norm", lambda: _old(nn.utils.weight_norm), _forward(1, 3))
    _add("module/spectral norm", lambda: _old(nn.utils.spectral_norm).eval(), _forward(1, 3))
    _add("module/pruned", _pruned, _forward(1, 3))
    _add("module/frozen", _frozen, _forward(2, 2))
    # Of an averaged and of a parametrized module only the state was ever loaded.
    _add("state of an averaged module", lambda: _averaged().state_dict())
    _add("state of a parametrized module", lambda: _parametrized().state_dict())
    _add("parametrizations", lambda: _parametrized().parametrizations)
    _add("orthogonal", lambda: parametrizations.orthogonal(_filled(nn.Linear(2, 2))).state_dict())
    _add("orthogonal parametrizations", lambda: parametrizations.orthogonal(
        _filled(nn.Linear(2, 2))).parametrizations)  # fmt: skip
    _add("spectral parametrizations", lambda: _spectral().parametrizations)
    _add("pruning methods", lambda: [
        prune.L1Unstructured(2), prune.RandomUnstructured(0.5), prune.LnStructured(1, 2),
        prune.Identity()])  # fmt: skip
    _add("keys that do not fit", lambda: nn.Linear(1, 1, bias=False).load_state_dict(
        nn.Linear(1, 1).state_dict(), strict=False))  # fmt: skip
    _add("result of adaptive softmax", lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 6, [2, 4])(
        leafax.zeros(1, 16), leafax.tensor([1]))._replace(output=0, loss=0))  # fmt: skip
    _add("packed sequence", _packed, lambda p: rnn.pad_packed_sequence(p))
    _add(
        "functions",
        lambda: [
            F.relu,
            F.gelu,
            leafax.add,
            leafax.Tensor.add,
            leafax.nn.init.zeros_,
            F.cross_entropy,
            leafax.special.erf,
            leafax.linalg.norm,
        ],
    )


def _old(norm: Callable[[Any], Any]) -> Any:
    leafax.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the older of two ways
        return _filled(norm(nn.Linear(3, 2)))


def _spectral() -> Any:
    leafax.manual_seed(0)
    return parametrizations.spectral_norm(_filled(nn.Linear(2, 2))).eval()


def _parametrized() -> Any:
    module = _filled(nn.Linear(2, 2))
    parametrize.register_parametrization(module, "weight", nn.Softplus())
    return parametrizations.weight_norm(module, "bias")


# ---------------------------------------------------------------- optim

_RATES: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "weight_decay": 0.1}, "Adam": {"amsgrad": True}, "AdamW": {},
    "Adagrad": {}, "Adadelta": {}, "Adamax": {}, "ASGD": {}, "NAdam": {}, "RAdam": {},
    "RMSprop": {"centered": True, "momentum": 0.5}, "Rprop": {}, "LBFGS": {}, "Adafactor": {},
    "Muon": {},
}  # fmt: skip


def _optimizer(name: str) -> Any:
    """An optimizer after a step."""
    params = [nn.Parameter(_tensor(2, 2)), nn.Parameter(_tensor(1, 2))]
    opt = getattr(optim, name)(params, lr=0.125, **_RATES[name])
    _step(opt)
    return opt


def _optax() -> Any:
    import optax

    params = [nn.Parameter(_tensor(2)), nn.Parameter(_tensor(3))]
    opt = optim.Optax(params, optax.adam(0.125))
    _step(opt)
    return opt


def _step(opt: Any) -> Any:
    params = [p for group in opt.param_groups for p in group["params"]]

    def loss() -> Any:
        opt.zero_grad()
        total = sum(((p - 1) ** 2).sum() for p in params)
        total.backward()
        return total

    opt.step(loss)
    return params


def _groups() -> Any:
    net = _filled(nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1)))
    return optim.AdamW(freezing.groups(net, {"0": {"lr": 0.5}}, weight_decay=0.0), lr=0.25)


def halved(epoch: int) -> float:
    """A user's rate by epoch."""
    return float(0.5**epoch)


def _schedulers() -> dict[str, Callable[[Any], Any]]:
    lr = optim.lr_scheduler
    return {
        "StepLR": lambda opt: lr.StepLR(opt, 2),
        "MultiStepLR": lambda opt: lr.MultiStepLR(opt, [1, 3]),
        "ConstantLR": lambda opt: lr.ConstantLR(opt),
        "LinearLR": lambda opt: lr.LinearLR(opt),
        "ExponentialLR": lambda opt: lr.ExponentialLR(opt, 0.5),
        "PolynomialLR": lambda opt: lr.PolynomialLR(opt),
        "CosineAnnealingLR": lambda opt: lr.CosineAnnealingLR(opt, 4),
        "CosineAnnealingWarmRestarts": lambda opt: lr.CosineAnnealingWarmRestarts(opt, 2),
        "CyclicLR": lambda opt: lr.CyclicLR(opt, 0.1, 1.0, mode="triangular2"),
        "OneCycleLR": lambda opt: lr.OneCycleLR(opt, 1.0, total_steps=8),
        "LambdaLR": lambda opt: lr.LambdaLR(opt, halved),
        "MultiplicativeLR": lambda opt: lr.MultiplicativeLR(opt, halved),
        "ReduceLROnPlateau": lambda opt: lr.ReduceLROnPlateau(opt),
        "SequentialLR": lambda opt: lr.SequentialLR(
            opt, [lr.ConstantLR(opt), lr.ExponentialLR(opt, 0.5)], [1]),
        "ChainedScheduler": lambda opt: lr.ChainedScheduler(
            [lr.ConstantLR(opt), lr.ExponentialLR(opt, 0.5)], opt),
        "SWALR": lambda opt: optim.swa_utils.SWALR(opt, 0.05),
    }  # fmt: skip


def _scheduled(name: str) -> Any:
    opt = optim.SGD([nn.Parameter(_tensor(2))], lr=0.5, momentum=0.5)
    schedule = _schedulers()[name](opt)
    for _ in range(2):
        _step(opt)
        schedule.step(*_measure(name))
    return schedule


def _measure(name: str) -> tuple[float, ...]:
    return (1.0,) if name == "ReduceLROnPlateau" else ()


def _rates(name: str) -> Callable[[Any], Any]:
    def rates(schedule: Any) -> Any:
        seen = []
        for _ in range(3):
            opt = getattr(schedule, "optimizer", None) or schedule._schedulers[0].optimizer
            _step(opt)
            schedule.step(*_measure(name))
            seen.append([group["lr"] for group in opt.param_groups])
        return seen

    return rates


def _scaler() -> Any:
    return leafax.amp.GradScaler("cpu", init_scale=8.0)


def _optimizers() -> None:
    for name in _RATES:
        _add(f"optimizer/{name}", lambda name=name: _optimizer(name), _step)
        _add(f"optimizer state/{name}", lambda name=name: _optimizer(name).state_dict())
    _add("optimizer state/Optax", lambda: _optax().state_dict())
    _add("optimizer/groups of a model", _groups, _step)
    _add("optimizer state/groups of a model", lambda: _groups().state_dict())
    for name in _schedulers():
        _add(f"scheduler/{name}", lambda name=name: _scheduled(name), _rates(name))
        _add(f"scheduler state/{name}", lambda name=name: _scheduled(name).state_dict())
    _add("grad scaler", _scaler, lambda s: s.scale(leafax.tensor(2.0)))
    _add("grad scaler state", lambda: _scaler().state_dict())


# ---------------------------------------------------------------- distributions, data, others


def _distributions() -> None:
    third = leafax.tensor([0.25, 0.75])
    kinds: dict[str, tuple[Callable[[], Any], Any]] = {
        "Normal": (lambda: dist.Normal(_tensor(2), 2.0), 0.5),
        "Categorical": (lambda: dist.Categorical(probs=third), 1.0),
        "Bernoulli": (lambda: dist.Bernoulli(logits=_tensor(2)), 1.0),
        "Beta": (lambda: dist.Beta(third, third + 1), 0.5),
        "Dirichlet": (lambda: dist.Dirichlet(third), [0.5, 0.5]),
        "Independent": (lambda: dist.Independent(dist.Normal(_tensor(2), 1.0), 1), [0.0, 1.0]),
        "MultivariateNormal": (
            lambda: dist.MultivariateNormal(_tensor(2), leafax.eye(2)), [0.0, 1.0]),
        "LogNormal": (lambda: dist.LogNormal(third, 1.0), 0.5),
        "Uniform": (lambda: dist.Uniform(0.0, leafax.tensor(2.0)), 0.5),
        "MixtureSameFamily": (lambda: dist.MixtureSameFamily(
            dist.Categorical(third), dist.Normal(_tensor(2), 1.0)), 0.5),
    }  # fmt: skip
    for name, (make, x) in kinds.items():
        _add(f"distribution/{name}", make, lambda d, x=x: d.log_prob(leafax.tensor(x)))
    one = leafax.tensor(1.0)
    transforms: dict[str, Callable[[], Any]] = {
        "AffineTransform": lambda: dist.AffineTransform(0.5, one * 2),
        "ComposeTransform": lambda: dist.ComposeTransform(
            [dist.ExpTransform(), dist.AffineTransform(one, 2.0).inv]),
        "SigmoidTransform": lambda: dist.SigmoidTransform(cache_size=1),
        "TanhTransform": lambda: dist.TanhTransform(),
        "StackTransform": lambda: dist.StackTransform([dist.ExpTransform()] * 2),
        "StickBreakingTransform": lambda: dist.StickBreakingTransform(),
        "SoftmaxTransform": lambda: dist.SoftmaxTransform(),
        "PowerTransform": lambda: dist.PowerTransform(one * 2),
        "ReshapeTransform": lambda: dist.ReshapeTransform((2,), (1, 2)),
        "LowerCholeskyTransform": lambda: dist.LowerCholeskyTransform(),
    }  # fmt: skip
    for name, make in transforms.items():
        x = _numbers(2, 2) if name == "LowerCholeskyTransform" else _numbers(2)
        _add(f"transform/{name}", make, lambda t, x=x: t(leafax.from_numpy(x)))
    _add("constraints", lambda: [
        *_plain_constraints(), dist.constraints.interval(0, 1), dist.constraints.less_than(1.0),
        dist.constraints.greater_than(0.0), dist.constraints.integer_interval(0, 3),
        dist.constraints.independent(dist.constraints.unit_interval, 1), dist.constraints.cat(
            [dist.constraints.positive, dist.constraints.real], 0, [1, 1]),
    ])  # fmt: skip


def _plain_constraints() -> list[Any]:
    found = [getattr(dist.constraints, name) for name in dist.constraints.__all__]
    return [c for c in found if isinstance(c, dist.constraints.Constraint)]


def _pairs() -> Any:
    return data.TensorDataset(_tensor(4, 2), leafax.arange(4))


def _drawn(loader: Any) -> Any:
    leafax.manual_seed(3)
    return list(loader)


def _datasets() -> None:
    def items(d: Any) -> Any:
        return [d[i] for i in range(len(d))]

    _add("dataset/TensorDataset", _pairs, items)
    _add("dataset/Subset", lambda: data.Subset(_pairs(), [2, 0]), items)
    _add("dataset/ConcatDataset", lambda: data.ConcatDataset([_pairs(), _pairs()]), items)
    _add("dataset/StackDataset", lambda: data.StackDataset(a=_pairs(), b=[1, 2, 3, 4]), items)
    _add("sampler/RandomSampler", lambda: data.RandomSampler(range(4)), _drawn)
    _add("sampler/WeightedRandomSampler",
         lambda: data.WeightedRandomSampler([0.5, 0.5, 1.0], 3), _drawn)  # fmt: skip
    _add("sampler/BatchSampler",
         lambda: data.BatchSampler(data.SequentialSampler(range(5)), 2, False), _drawn)  # fmt: skip
    _add("sampler/DistributedSampler",
         lambda: data.DistributedSampler(_pairs(), 2, 1, seed=3), _drawn)  # fmt: skip
    _add("loader", lambda: data.DataLoader(_pairs(), 2, shuffle=True), _drawn)


def _exceptions() -> list[BaseException]:
    return [
        leafax.OutOfMemoryError("full"), leafax.linalg.LinAlgError("singular"),
        leafax.utils.checkpoint.CheckpointError("differs"), GradcheckError("wrong"),
    ]  # fmt: skip


def _others() -> None:
    tree = leafax.utils._pytree
    _add("tree spec", lambda: tree.tree_flatten({"a": [1, (2, None)], "b": OrderedDict(c=3)})[1],
         lambda spec: tree.tree_unflatten([1, 2, 3, 4], spec))  # fmt: skip
    _add("key path", lambda: [key for key, _ in tree.tree_leaves_with_path({"a": [1, 2]})])
    _add("exceptions", _exceptions)
    _add("leaves", lambda: leafax.Leaves([_tensor(2), _tensor(1)]))
    _add("enumerations", lambda: [
        *nn.attention.bias.CausalVariant,
        *nn.attention.SDPBackend,
        *leafax.utils.dlpack.DLDeviceType, *leafax.utils.checkpoint.CheckpointPolicy,
        *leafax.serialization.LoadEndianness,
    ])  # fmt: skip
    _add("causal bias", lambda: nn.attention.bias.causal_lower_right(2, 3))
    _add("auxiliary request", lambda: flex.AuxRequest(lse=True))
    _add("block mask", lambda: flex.create_block_mask(flex.noop_mask, 1, 1, 8, 8, device="cpu"))
    _add("modes", lambda: [leafax.no_grad(), leafax.autocast("cpu")])
    _add("summary", lambda: leafax.adapters.summary(nn.Linear(1, 1)))


# ---------------------------------------------------------------- adapters


class Two(flax.linen.Module):
    """A model of a user; one of Flax's layers alone holds initializers that cannot be pickled."""

    @flax.linen.compact
    def __call__(self, x: Any) -> Any:
        return flax.linen.Dense(2, name="out")(flax.linen.Dense(3, name="hidden")(x))


def _linen() -> Any:
    variables = {"params": {
        "hidden": {"kernel": jax.numpy.asarray(_numbers(2, 3)), "bias": jax.numpy.zeros(3)},
        "out": {"kernel": jax.numpy.asarray(_numbers(3, 2)), "bias": jax.numpy.ones(2)},
    }}  # fmt: skip
    return linen.Model(Two(), variables)


def _nnx() -> Any:
    return _filled(nnx.Model(flax.nnx.Linear(2, 3, rngs=flax.nnx.Rngs(0))))


def _adapted(model: Any, *what: Any) -> Any:
    adapter = lora.add(model, list(what), rank=1)
    with leafax.no_grad():
        for p in adapter.parameters():
            p.copy_(_tensor(*p.shape) / 4)
    return model, adapter


def _lora_modules() -> Any:
    return _adapted(_filled(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))), "0")


def _adapters() -> None:
    _add("linen/model", lambda: _linen().freeze("hidden"), _forward(1, 2))
    _add("linen/state dict", lambda: _linen().state_dict())
    _add("linen/averaged", lambda: optim.swa_utils.AveragedModel(_linen()))
    _add("linen/groups", lambda: _linen().groups({"hidden": {"lr": 0.5}}))
    _add("linen/lora", lambda: _adapted(_linen(), "hidden.kernel"),
         lambda x: x[0](_tensor(1, 2)))  # fmt: skip
    _add("linen/inside a module", lambda: _filled(nn.Sequential(nn.Linear(2, 2), _linen())),
         _forward(1, 2))  # fmt: skip
    _add("nnx/model", _nnx, _forward(1, 2))
    _add("nnx/state dict", lambda: _nnx().state_dict())
    _add("lora", _lora_modules, lambda x: x[0](_tensor(1, 2)))
    _add("lora/state dict", lambda: _lora_modules()[1].state_dict())
    _add("lora/factors", lambda: _lora_modules()[1].factors)


for _part in (
    _tensors, _modules, _optimizers, _distributions, _datasets, _others, _adapters,
):  # fmt: skip
    _part()


# ---------------------------------------------------------------- files and names

# What is also saved as a file; the last two in the older format.
SAVED = (
    "tensor/leaf", "tensor/view", "tensor/bfloat16", "tensor/bool", "tensor/conjugated",
    "tensor/uint16", "parameter", "tied tensors", "dtypes", "size", "device", "layout",
    "module/state dict", "optimizer state/Adam", "optimizer state/SGD", "scheduler state/StepLR",
    "generator state", "module/net", "module/lstm", "module/transformer", "module/pruned",
    "module/frozen", "optimizer/AdamW", "distribution/Normal", "dataset/TensorDataset",
    "packed sequence", "lora", "linen/state dict", "nnx/model", "tensor/transposed",
    "optimizer/SGD",
)  # fmt: skip
OLDER = ("tensor/transposed", "optimizer/SGD")
# Those of `leafax.functional` that its users call; the rest of it serves leafax.
FUNCTIONAL = "OutOfMemoryError grad lower merge partition paths select tag value_and_grad".split()


# Names of PyTorch's own that programs use nevertheless.
UNDERSCORED = (
    "_LRScheduler _BatchNorm _NormBase _InstanceNorm _ConvNd _ConvTransposeNd _DropoutNd _Loss "
    "_WeightedLoss _MaxPoolNd _AvgPoolNd _LPPoolNd"
).split()


def public_names() -> Iterator[tuple[ModuleType, str]]:
    """Yield the names that public modules define, or import for others to use."""
    found = pkgutil.walk_packages(leafax.__path__, "leafax.")
    for name in ["leafax", *sorted(module.name for module in found)]:
        if "._" in name or name.startswith("leafax.functional."):
            continue
        module = importlib.import_module(name)
        kept = FUNCTIONAL if name == "leafax.functional" else sorted(vars(module))
        stated = _stated(module)
        for entry in kept:
            value = vars(module).get(entry)
            own = getattr(value, "__module__", None)
            is_stated = entry in stated or name in ("leafax", own)
            is_public = not entry.startswith("_") or entry in UNDERSCORED
            is_ours = isinstance(own, str) and own.startswith("leafax") and callable(value)
            if is_stated and is_public and is_ours:
                yield module, entry


def _stated(module: ModuleType) -> set[str]:
    """The names that a module's source defines or imports `as` themselves."""
    assert module.__file__ is not None
    stated = set()
    for node in ast.parse(Path(module.__file__).read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            stated.add(node.name)
        elif isinstance(node, ast.Assign):
            stated |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            stated |= {a.name for a in node.names if a.asname == a.name}
    return stated


def write() -> None:
    """Make all objects, and write their pickles and files."""
    entries: dict[str, bytes] = {}
    for name, built in BUILDERS.items():
        entries[f"pickled/{name}"] = pickle.dumps(built.make(), PROTOCOL)
    for name in SAVED:
        file = io.BytesIO()
        leafax.save(BUILDERS[name].make(), file, _use_new_zipfile_serialization=name not in OLDER)
        entries[f"saved/{name}"] = file.getvalue()
    names: dict[str, list[tuple[str, bytes]]] = {}
    for module, name in public_names():
        thing = getattr(module, name)
        try:
            pickled = pickle.dumps(thing, PROTOCOL)
            whole = pickle.loads(pickled) is thing
        except (pickle.PicklingError, AttributeError, TypeError):
            continue
        if whole:
            names.setdefault(module.__name__, []).append((name, pickled))
    for at, pickles in names.items():
        entries[f"names/{at}"] = pickle.dumps(pickles, PROTOCOL)
    with zipfile.ZipFile(PATH, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry, content in entries.items():
            archive.writestr(zipfile.ZipInfo(entry), content, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    # By its name, so that pickles of the classes above do not say `__main__`.
    importlib.import_module("make_pickles").write()
