"""PyTorch's `torch.distributed.rpc`: there is none of its functions."""

from ..._core.absent.stand_ins import refuse

_ONE = "processes compute together by collectives"
init_rpc = refuse("distributed.rpc.init_rpc", _ONE)
rpc_sync = refuse("distributed.rpc.rpc_sync", _ONE)
rpc_async = refuse("distributed.rpc.rpc_async", _ONE)
remote = refuse("distributed.rpc.remote", _ONE)
shutdown = refuse("distributed.rpc.shutdown", _ONE)


def is_available() -> bool:
    """Return False: there are no remote calls."""
    return False
