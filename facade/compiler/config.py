"""Settings of `torch.compiler`: they are remembered, and nothing reads them."""

job_id: str | None = None
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
recompile_limit = 8
accumulated_recompile_limit = 256
verbose = False
force_disable_caches = False
