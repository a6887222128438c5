"""Names that private modules had in 0.1.0: pickles and saved files say them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# Old name and present name, within the package.
_MOVED = {
    "_amp_functions": "_ops.autocast.custom_fwd",
    "_autocast_scope": "_ops.autocast.scope",
    "_buffers": "_ops.creation.dlpack",
    "_conditions": "_ops.composites.asserts",
    "_counting": "_ops.composites.data_dependent_sizes",
    "_creation": "_ops.creation.factories",
    "_dtype": "_core.dtypes",
    "_einsum": "_ops.composites.einsum",
    "_explain": "_runtime.explain",
    "_from_data": "_ops.creation.from_data",
    "_functions": "_api.functions",
    "_grad_scaler": "_api.grad_scaler",
    "_joined": "_ops.composites.joins",
    "_kron": "_ops.composites.kron",
    "_legacy": "_ops.creation.legacy_constructors",
    "_lowrank": "_ops.composites.low_rank",
    "_make_tensor": "_api.make_tensor",
    "_memory_format": "_core.memory_format",
    "_modes": "_core.grad_modes",
    "_older_amp": "_api.deprecated_amp",
    "_once": "_core.warn_once",
    "_opaque": "_dispatch.jax_call",
    "_products": "_ops.composites.matmul",
    "_pytree": "_core.tree.trees",
    "_pytree_paths": "_core.tree.paths",
    "_random": "_ops.creation.generator",
    "_removed": "_ops.calls.removed_names",
    "_repr": "_tensor.printing",
    "_run": "_runtime.cut",
    "_settings": "_tensor.switches",
    "_shapes": "_ops.composites.shapes",
    "_split": "_ops.composites.split",
    "_storages": "_ops.creation.storage_objects",
    "_tensordot": "_ops.composites.tensordot",
    "_together": "_tracing.leaf_tuples",
    "_type_info": "_core.number_limits",
    "_typename": "_core.typename",
    "adapters._by_id": "adapters._models.by_id",
    "adapters._call": "adapters._models.calls",
    "adapters._checkpoint": "adapters._files.checkpoint",
    "adapters._child": "adapters._flax.child",
    "adapters._from_torch": "adapters._files.from_torch",
    "adapters._linen_module": "adapters._modules.linen_module",
    "adapters._module_lora": "adapters._modules.lora",
    "adapters._nnx_module": "adapters._modules.nnx_module",
    "adapters._stillness": "adapters._models.stillness",
    "adapters._summary": "adapters._models.summary",
    "autograd._backward": "_autograd.backward",
    "autograd._edges": "autograd._edge_helpers",
    "autograd._gradcheck_legacy": "autograd._gradcheck.legacy",
    "autograd._mutation": "_autograd.saved_hooks.allow_mutation",
    "autograd._saved_hooks": "_autograd.saved_hooks.saved_tensors_hooks",
    "autograd._virtual_node": "_autograd.graph.node_type",
    "distributions._elementwise_transforms": "distributions._transforms.elementwise",
    "distributions._joined_transforms": "distributions._transforms.joined",
    "distributions._kl_registry": "distributions._kl.registry",
    "distributions._transform": "distributions._transforms.transform",
    "distributions._vector_transforms": "distributions._transforms.vector",
    "func._levels": "func._running",
    "functional._export": "functional.lowering.export",
    "functional._masks": "functional.masks",
    "functional._paths": "functional.program.paths",
    "functional._tags": "functional.lowering.tags",
    "nn._activations": "nn._functional.activations",
    "nn._attention": "nn._functional.attention",
    "nn._causal_bias": "nn.attention._causal_bias",
    "nn._clip_grad": "nn._functional.clip_grad",
    "nn._cosine": "nn._functional.cosine",
    "nn._cross_entropy": "nn._functional.cross_entropy",
    "nn._dropout": "nn._functional.dropout",
    "nn._fractional_pool": "nn._functional.fractional_pool",
    "nn._grids": "nn._functional.grids",
    "nn._linear": "nn._functional.linear",
    "nn._linear_cross_entropy": "nn._functional.linear_cross_entropy",
    "nn._losses": "nn._functional.losses",
    "nn._margin_losses": "nn._functional.margin_losses",
    "nn._norms": "nn._functional.norms",
    "nn._pooling": "nn._functional.pooling",
    "nn._sparse": "nn._functional.sparse",
    "nn._unpool": "nn._functional.unpool",
    "nn._vectors": "nn._functional.vectors",
    "nn.modules._loading": "nn.modules._module.loading",
    "nn.modules._loss": "nn.modules._layers.loss",
    "nn.modules._old_backward_hooks": "nn.modules._module.old_backward_hooks",
    "nn.modules._rnn_base": "nn.modules._layers.rnn_base",
    "optim._adadelta": "optim._rules.adadelta",
    "optim._adagrad": "optim._rules.adagrad",
    "optim._adam": "optim._rules.adam",
    "optim._adamax": "optim._rules.adamax",
    "optim._asgd": "optim._rules.asgd",
    "optim._averages": "optim._schedules.averages",
    "optim._cycles": "optim._schedules.cycles",
    "optim._hooks": "optim._base.hooks",
    "optim._lbfgs": "optim._rules.lbfgs",
    "optim._nadam": "optim._rules.nadam",
    "optim._optax": "optim._rules.optax",
    "optim._optimizer": "optim._base.optimizer",
    "optim._radam": "optim._rules.radam",
    "optim._rmsprop": "optim._rules.rmsprop",
    "optim._rprop": "optim._rules.rprop",
    "optim._schedule": "optim._schedules.schedule",
    "optim._sgd": "optim._rules.sgd",
}
# Names of these stand in further modules, too.
_MORE = {
    "_counting": ("_ops.composites.unique",),
    "_from_data": ("_ops.creation.from_arrays",),
    "_run": ("_runtime.observation",),
    "_settings": ("backends._float32_precision",),
}
# These are packages now, so they are found: the old names are given to them.
_PACKAGES = {
    "_tensor": ("_tensor.copying", ("_rebuild",)),
    "autograd._gradcheck": (
        "autograd._gradcheck.check", ("GradcheckError", "gradcheck", "gradgradcheck"),
    ),
}  # fmt: skip


class _OldNames(MetaPathFinder, Loader):
    """Find a module under the name that it had, where no other has that name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module that has moved, None for all others."""
        own, _, rest = fullname.partition(".")
        return ModuleSpec(fullname, self) if own == "leafax" and rest in _MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module with the names of the one that took its place."""
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Fill in the names."""
        name = module.__name__.partition(".")[2]
        own = ("__name__", "__spec__", "__loader__", "__package__")
        for present in (*_MORE.get(name, ()), _MOVED[name]):
            names = vars(import_module(f"leafax.{present}")).items()
            vars(module).update({k: v for k, v in names if k not in own})


def find_old_names() -> None:
    """Make `import` and pickle find the modules of 0.1.0."""
    sys.meta_path.append(_OldNames())
    for package, (module, names) in _PACKAGES.items():
        for name in names:
            found = getattr(sys.modules[f"leafax.{module}"], name)
            setattr(sys.modules[f"leafax.{package}"], name, found)
