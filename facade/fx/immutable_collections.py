"""Lists and dicts of nodes' arguments, which are changed by giving the node others."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core.tree.nodes import register_pytree_node

_HELP = (
    "If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
    "instead create a new copy of it and assign the copy to the node:\n\n"
    "    new_args = ...  # copy and mutate args\n"
    "    node.args = new_args"
)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_HELP}")


class immutable_list(list[Any]):  # noqa: N801
    """A list that refuses to be changed."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[str, Any]):  # noqa: N801
    """A dict that refuses to be changed."""

    __delitem__ = __ior__ = __setitem__ = _refuse  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


register_pytree_node(
    immutable_list, lambda x: (list(x), None), lambda xs, context: immutable_list(xs)
)
register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda xs, keys: immutable_dict(zip(keys, xs, strict=True)),
)
