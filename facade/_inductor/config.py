"""Settings of `torch._inductor`: they are remembered, and nothing reads them."""

from __future__ import annotations

from ..backends._switches import Switches

conv_1x1_as_mm = coordinate_descent_tuning = coordinate_descent_check_all_directions = False
epilogue_fusion = True
force_fuse_int_mm_with_mul = use_mixed_mm = max_autotune = max_autotune_gemm = freezing = False
fx_graph_cache = fallback_random = emulate_precision_casts = shape_padding = False
compile_threads = 1
triton = Switches(cudagraphs=False, unique_kernel_names=False, cudagraph_trees=False)
cpp = Switches(threads=-1, simdlen=None)
