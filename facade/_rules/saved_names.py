"""Names of the attributes `_saved_*` that PyTorch's nodes have.

What its formulas read, beside tensors: its nodes have nothing of what they do not need.
"""

from __future__ import annotations

import functools

# `names: nodes`, a node without "Backward" and a zero after it.
_NAMES = """\
: Add1 Alias Bernoulli Bernoulli1 Bernoulli2 BlockDiag Cauchy Ceil Clone Conj ConjPhysical
  ConjPhysical1 CopyBackwards CopySlices Deg2Rad Eq Exponential Fill Fill2 Fill3 Floor Fmod Frac Ge
  Geometric Geqrf Gt Le LogNormal Lt Ne Neg NegView Normal NotImplemented Poisson Rad2Deg Random2
  Remainder Round Sign T ToCopy Trunc Uniform ViewAsComplex ViewAsReal Zero
A LU left pivots result: LinalgSolveEx
A LU pivots result: LinalgDet
A LU pivots sign: LinalgSlogdet
A self solution transpose unitriangular upper: TriangularSolve
C HxW N eps group input result1 result2 weight: NativeGroupNorm
L P U pivot: LinalgLu
L upper: LinalgCholeskyEx
LU adjoint left pivots result: LinalgLuSolve
LU pivot pivots: LinalgLuFactorEx
LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2: LuUnpack
Q R mode: LinalgQr
S S_sym_argsize_minus_1 U Vh full_matrices: LinalgSvd
accumulate index source: Put
accumulate indices: IndexPut
align_corners grid input interpolation_mode padding_mode: GridSampler2D GridSampler3D
align_corners output_size scales self_sym_sizes: UpsampleLinear1D
align_corners output_size scales_d scales_h scales_w self_sym_sizes: UpsampleTrilinear3D
align_corners output_size scales_h scales_w self_sym_sizes: UpsampleBicubic2D UpsampleBicubic2DAa
  UpsampleBilinear2D UpsampleBilinear2DAa UpsampleLanczos2DAa
align_corners size: AffineGridGenerator
alpha: Add Rsub Rsub1 Sub
alpha batch1 batch1_sym_argsize_0 batch1_sym_argsize_1 batch2 batch2_sym_argsize_2 beta: Addbmm
alpha batch1 batch2 beta: Baddbmm
alpha beta mat vec: Addmv
alpha beta mat1 mat1_sym_sizes mat1_sym_strides mat2 mat2_sym_sizes mat2_sym_strides: Addmm
alpha beta vec1 vec2: Addr
alpha dim index source source_dim: IndexAdd
alpha input_scale scale self: Elu
alpha input_scale result scale: Elu1
alpha result: Celu1
alpha self: Celu
approximate self: Gelu
attn_mask dropout_p is_causal key logsumexp output query scale value:
  ScaledDotProductFlashAttentionForCpu
axis data initial lengths offsets reduce result: SegmentReduce
b self solution: LinalgLstsq
beta reduction self target: SmoothL1Loss
beta self threshold: Softplus
bias input normalized_shape result1 result2 weight: NativeLayerNorm
bias pad self weight: ConvTbc
bias_sym_sizes_opt dilation groups input output_padding padding stride transposed weight:
  Convolution
blank input_lengths log_probs result0 result1 target_lengths targets zero_infinity: CtcLoss
buffer self: LogSigmoid
ceil_mode count_include_pad divisor_override kernel_size padding self stride: AvgPool2D AvgPool3D
ceil_mode dilation kernel_size padding result1 self stride: MaxPool2DWithIndices
  MaxPool3DWithIndices
condition: Where
correction dim keepdim result self: Std
correction dim keepdim result0 self: StdMean
correction dim keepdim self: Var VarMean
delta reduction self target: HuberLoss
diagonal: Tril Triu
dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2 stride: Im2Col
dilation kernel_size padding stride: Col2Im
dim: Cat Cumsum Stack Unbind Unsqueeze Unsqueeze1
dim end self_sym_sizes start step: Slice
dim end start step: SliceScatter
dim forward normalization: FftC2C
dim include_self index reduce result self src: ScatterReduce
dim index: IndexFill IndexFill1 Scatter Scatter1 ScatterAdd SelectScatter
dim index self sparse_grad: Gather
dim index self_sym_sizes: IndexSelect Select
dim index source source_dim: IndexCopy
dim indices keepdim self_sym_sizes: Kthvalue Max Median1 Min Mode Nanmedian1
dim indices self: Cummax Cummin
dim indices self_sym_sizes: Sort Sort1 Topk
dim keepdim max min self: Aminmax
dim keepdim ord result self: LinalgVectorNorm
dim keepdim p result self: Norm1
dim keepdim result self: Amax Amin Logsumexp Prod1
dim keepdim self: Nansum
dim keepdim self_sym_numel self_sym_sizes: Mean1
dim keepdim self_sym_sizes: Sum1
dim length self_sym_sizes start: NarrowCopy
dim maxnorm p self: Renorm
dim normalization: FftC2R
dim normalization onesided self: FftR2C
dim other self: LinalgCross
dim result: LogSoftmax Softmax
dim result self: Cumprod Logcumsumexp
dim self: Glu
dim self_sym_sizes: Squeeze1 Squeeze2 Squeeze4
dim self_sym_sizes split_size: Split UnsafeSplit
dim self_sym_sizes split_sizes: SplitWithSizes UnsafeSplitWithSizes
dim0 dim1: Transpose Transpose1
dim1 dim2 offset: DiagEmbed DiagonalScatter
dim1 dim2 offset self_sym_sizes: Diagonal
dimension self_sym_sizes size step: Unfold
dims: Flip Permute
dims k: Rot90
dims shifts: Roll
downscale_factor: PixelUnshuffle
eigenvalues eigenvectors: LinalgEig LinalgEigh
end self weight: Lerp1
eps input result1 result2 running_mean running_var training weight: NativeBatchNorm
eps self: Logit
exponent: Frexp
exponent result self: Pow1 Pow2
exponent self: Pow
groups: ChannelShuffle
ignore_index reduction self target total_weight weight: NllLoss NllLoss2D
imag real: Complex
index self: Take
dim include_self index reduce result self source: IndexReduce
indices: MaxUnpool2D MaxUnpool3D
indices padding_idx scale_grad_by_freq sparse weight_sym_argsize_0: Embedding
indices self_sym_sizes: Index
input result tau: LinalgHouseholderProduct
input2 input3 left result self transpose: Ormqr
input2 result self upper: CholeskySolve
inverse: LinalgInvEx
is_target reduction self target: MultilabelMarginLoss
kernel_size output_size result1 self: FractionalMaxPool2D FractionalMaxPool3D
lambd self: Hardshrink Softshrink
left result self unitriangular upper: LinalgSolveTriangular
lower noise result training upper: RreluWithNoise1
lower noise self training upper: RreluWithNoise
margin p reduction self target weight: MultiMarginLoss
mask: MaskedFill MaskedFill1
mask self: MaskedSelect
mask source_sym_sizes: MaskedScatter
mat2 mat2_sym_sizes mat2_sym_strides self self_sym_sizes self_sym_strides: Mm
mat2 self: Bmm
max min self: Clamp Clamp1
max self: ClampMax ClampMax1
max_val min_val self: Hardtanh
min self: ClampMin ClampMin1
n self: Polygamma Polygamma1
negative_slope result: LeakyRelu1
negative_slope self: LeakyRelu
other: Div1 Mul1
other p result self: Dist
other result: Ldexp
other result self: Hypot
other rounding_mode self: Div2
other self: Atan2 Div Fmax Fmin Fmod1 Igamma Igammac Logaddexp Logaddexp2 Maximum Minimum Mul
  Nextafter Remainder1 SpecialXlog1Py SpecialZeta Vdot Xlogy
output_size scales self_sym_sizes: UpsampleNearest1D UpsampleNearestExact1D
output_size scales_d scales_h scales_w self_sym_sizes: UpsampleNearest3D UpsampleNearestExact3D
output_size scales_h scales_w self_sym_sizes: UpsampleNearest2D UpsampleNearestExact2D
p result self: Pdist
p result x1 x2: Cdist
p result1: NativeDropout
p self: Mvlgamma
pad: ConstantPadNd
padding self: ReflectionPad1D ReflectionPad2D ReflectionPad3D ReplicationPad1D ReplicationPad2D
  ReplicationPad3D
pos_weight reduction self target weight: BinaryCrossEntropyWithLogits
reduction self target: MseLoss SoftMarginLoss
reduction self target weight: BinaryCrossEntropy
repeats self_sym_sizes: Repeat
result: Exp Exp2 Expm1 Polar Reciprocal Relu Rsqrt Sigmoid SpecialNdtri Sqrt Tan Tanh
result self: Copysign Copysign1 LinalgPinv Max1 Median Min1 Nanmedian Prod Sgn SpecialErfcx
  SpecialI0E SpecialI1 SpecialI1E SpecialLogNdtr
result self upper: CholeskyInverse
result upper: Cholesky
result1 self: AdaptiveMaxPool2D AdaptiveMaxPool3D
self: Abs Acos Acosh AdaptiveAvgPool2D AdaptiveAvgPool3D Angle Asin Asinh Atan Atanh Cos Cosh
  Digamma Erf Erfc Erfinv Hardsigmoid Hardswish I0 Lgamma LinalgMatrixExp Log Log10 Log1P Log2
  Mish NanToNum Silu Sin Sinc Sinh SpecialEntr
self tensor: Dot
self threshold: Threshold Threshold1
self vec: Mv
self weight: PreluKernel
self_sym_numel self_sym_sizes: Mean
self_sym_sizes: Expand ReshapeAlias Squeeze Sum Trace UnsafeView View
size storage_offset stride: AsStrided AsStrided1
tensor1 tensor2 value: Addcdiv Addcmul
upscale_factor: PixelShuffle
weight: Lerp
"""


@functools.cache
def _kept() -> dict[str, frozenset[str]]:
    found = {}
    for line in _NAMES.replace("\n  ", " ").splitlines():
        names, _, nodes = line.partition(":")
        for node in nodes.split():
            found[node] = frozenset(names.split())
    return found


def names_of(node: str) -> frozenset[str] | None:
    """Give the names that nodes of this name save; None if PyTorch has no such node."""
    node = node.rpartition(":")[2].removesuffix("_copy")
    head, found, number = node.rpartition("Backward")
    return _kept().get(head + ("" if number == "0" else number) if found else node)


def may_have(node: str, name: str) -> bool:
    """Tell whether a node of this name has `_saved_<name>`; yes if PyTorch has no such node."""
    names = names_of(node)
    return names is None or name in names
