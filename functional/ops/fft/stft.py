"""Short-time Fourier transform and its inverse."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import complex_of, is_complex, is_floating, real_of, scalar_name
from ...program.op import Fault, op
from ..nn.checks import size_list
from ..nn.pad import pad

Array = jax.Array


def _described(name: str, x: Any, window: Array | None, numbers: dict[str, Any]) -> str:
    """Spell the call as PyTorch prints it in front of its complaints."""
    shown = "None"
    if window is not None:
        shown = f"{_type_name(window.dtype)}{{{size_list(window.shape)}}}"
    first = [f"{k}={v}" for k, v in list(numbers.items())[:3]]
    rest = [f"{k}={_flag(v)}" for k, v in list(numbers.items())[3:]]
    inner = ", ".join([*first, f"window={shown}", *rest])
    return f"{name}({_type_name(x.dtype)}{size_list(x.shape)}, {inner})"


def _type_name(dtype: Any) -> str:
    """Return the name of a type of tensors, in the form of older versions if they had the type."""
    name = scalar_name(dtype)
    newer = is_complex(dtype) or name == "BFloat16"
    return f"CPU{name}Type" if newer else f"torch.{name}Tensor"


def _flag(value: Any) -> str:
    return "None" if value is None else str(int(value))


def _whole_window(window: Array | None, n_fft: int, length: int, dtype: Any) -> Array:
    window = jnp.ones(length, dtype) if window is None else window
    left = (n_fft - length) // 2
    return jnp.pad(window, (left, n_fft - length - left))


def _padded(x: Array, n_fft: int, mode: str) -> Array:
    """Pad the signal by half a frame on both sides, as a batch of one as PyTorch's `pad` sees."""
    shape = (1,) * (3 - x.ndim) + x.shape
    wide = pad(x.reshape(shape), (n_fft // 2, n_fft // 2), mode)
    return wide.reshape(wide.shape[-x.ndim :]) if x.ndim else wide


@op(backward="TransposeBackward0", saves={})
def stft(
    input: Array, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Array | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Array:  # fmt: skip
    """Compute spectra of windows of a signal `(L,)` or `(B, L)`: `(B?, frequencies, frames)`.

    `return_complex=False` gives real and imaginary parts in a last dim of 2.
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    complex_in = is_complex(input.dtype) or (window is not None and is_complex(window.dtype))
    if return_complex is None and not complex_in:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will "
            "further require that return_complex=True in a future PyTorch release."
        )
    x = _padded(input, n_fft, pad_mode) if center else input
    _stft_errors(
        x, n_fft, hop, width, window, normalized, onesided, return_complex, align_to_window
    )
    one_sided = (not complex_in) if onesided is None else onesided
    if one_sided and complex_in:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    flat = x[None] if x.ndim == 1 else x
    if align_to_window and n_fft > width:
        # Frames start where the window does, so the zeros around it may hang over the ends.
        left = (n_fft - width) // 2
        flat = jnp.pad(flat, ((0, 0), (left, n_fft - width - left)))
    count = 1 + (flat.shape[1] - n_fft) // hop
    frames = flat[:, np.arange(count)[:, None] * hop + np.arange(n_fft)]
    if window is not None or width < n_fft:
        frames = frames * _whole_window(window, n_fft, width, real_of(x.dtype))
    if frames.dtype.itemsize < 4:
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {scalar_name(x.dtype)}")
    norm = "ortho" if normalized else "backward"
    if one_sided:
        out = jnp.fft.rfft(frames, norm=norm)
    else:
        out = jnp.fft.fft(frames.astype(complex_of(frames.dtype)), norm=norm)
    out = jnp.swapaxes(out, 1, 2)
    out = out[0] if x.ndim == 1 else out
    return jnp.stack([out.real, out.imag], -1) if return_complex is False else out


def _stft_errors(
    x: Any, n_fft: int, hop: int, width: int, window: Array | None, normalized: bool,
    onesided: bool | None, return_complex: bool | None, align: bool | None,
) -> None:  # fmt: skip
    numbers = {
        "n_fft": n_fft, "hop_length": hop, "win_length": width, "normalized": normalized,
        "onesided": onesided, "return_complex": return_complex, "align_to_window": align,
    }  # fmt: skip
    call = _described("stft", x, window, numbers) + " "
    if not is_floating(x.dtype) and not is_complex(x.dtype):
        raise RuntimeError(f"{call}: expected a tensor of floating point or complex values")
    if not 1 <= x.ndim <= 2:
        raise RuntimeError(f"{call}: expected a 1D or 2D tensor")
    length = x.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{call}: expected 0 < n_fft < {length}, but got n_fft={width}")
    if hop <= 0:
        raise RuntimeError(f"{call}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and window.shape != (width,):
        raise RuntimeError(
            f"{call}: expected a 1D window tensor of size equal to win_length={width}, but got "
            f"window with size {size_list(window.shape)}"
        )


def _overlapped(frames: Array, hop: int) -> Array:
    """Sum of frames `(B, T, n)` laid `hop` apart: `(B, n + hop (T - 1))`."""
    batch, count, n = frames.shape
    places = np.arange(count)[:, None] * hop + np.arange(n)
    out = jnp.zeros((batch, n + hop * (count - 1)), frames.dtype)
    return out.at[:, places].add(frames)


def _span(n_fft: int, whole: int, center: bool, length: int | None) -> tuple[int, int]:
    """Return the ends of the signal; negative ones count from the end of `whole`."""
    start = n_fft // 2 if center else 0
    if length is not None:
        return start, start + length
    return start, -(n_fft // 2) if center else whole


def _envelope(
    count: int, n_fft: int, hop: int, width: int, window: Array | None, center: bool,
    length: int | None, dtype: Any,
) -> Array:  # fmt: skip
    weights = _whole_window(window, n_fft, width, dtype)
    squares = jnp.broadcast_to(weights * weights, (1, count, n_fft))
    whole = _overlapped(squares, hop)
    start, end = _span(n_fft, whole.shape[1], center, length)
    return whole[:, start:end]


def _istft_check(
    input: Array, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Array | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> list[Fault]:  # fmt: skip
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    around = _envelope(
        input.shape[-1], n_fft, hop, width, window, center, length, real_of(input.dtype)
    )
    low = jnp.abs(around).min() < 1e-11 if around.size else jnp.array(False)
    call = _istft_call(
        input, n_fft, hop, width, window, center, normalized, onesided, length, return_complex
    ).replace("{", "{{").replace("}", "}}")  # fmt: skip
    text = call + " window overlap add min: {value}\n[ CPUBoolType{{}} ]"
    return [Fault(low, RuntimeError, text, low.astype(np.int64))]


@op(backward="DivBackward0", saves={}, check=_istft_check)
def istft(
    input: Array, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Array | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Array:  # fmt: skip
    """Find the signal whose `stft` this is, by least squares; `length` elements of it."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    call = _istft_call(
        input, n_fft, hop, width, window, center, normalized, onesided, length, return_complex
    )
    _istft_errors(call, input, n_fft, hop, width, window, onesided, return_complex)
    x = input[None] if input.ndim == 2 else input
    spectra = jnp.swapaxes(x, 1, 2)
    norm = "ortho" if normalized else "backward"
    one_sided = x.shape[1] != n_fft if onesided is None else onesided
    if return_complex:
        frames = jnp.fft.ifft(spectra, n_fft, norm=norm)
    else:
        half = spectra if one_sided else spectra[..., : n_fft // 2 + 1]
        frames = jnp.fft.irfft(half, n_fft, norm=norm)
    dtype = real_of(x.dtype)
    signal = _overlapped(frames * _whole_window(window, n_fft, width, dtype), hop)
    start, end = _span(n_fft, signal.shape[1], center, length)
    around = _envelope(x.shape[2], n_fft, hop, width, window, center, length, dtype)
    if not around.size:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    out = signal[:, start:end] / around
    if end > signal.shape[1]:
        out = jnp.pad(out, ((0, 0), (0, end - signal.shape[1])))
    return out[0] if input.ndim == 2 else out


def _istft_call(
    x: Array, n_fft: int, hop: int, width: int, window: Array | None, center: bool,
    normalized: bool, onesided: bool | None, length: int | None, return_complex: bool,
) -> str:  # fmt: skip
    numbers = {
        "n_fft": n_fft, "hop_length": hop, "win_length": width, "center": center,
        "normalized": normalized, "onesided": onesided, "length": length,
        "return_complex": return_complex,
    }  # fmt: skip
    return _described("istft", x, window, numbers)


def _istft_errors(
    call: str, x: Array, n_fft: int, hop: int, width: int, window: Array | None,
    onesided: bool | None, return_complex: bool,
) -> None:  # fmt: skip
    if not is_complex(x.dtype):
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    for dim in (-2, -3):  # where parts of numbers are the last dim
        if x.ndim + 1 < -dim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-x.ndim - 1}, {x.ndim}], "
                f"but got {dim})"
            )
    if x.size == 0:
        raise RuntimeError(f"{call} : input tensor cannot be empty.")
    if x.ndim not in (2, 3):
        raise RuntimeError(
            f"{call} : expected a tensor with 3 or 4 dimensions, but got {x.ndim + 1}"
        )
    bins, one_sided = x.shape[-2], (x.shape[-2] != n_fft if onesided is None else onesided)
    if one_sided and n_fft // 2 + 1 != bins:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match n_fft / 2 + 1 when onesided=True, but got {bins}"
        )
    if not one_sided and n_fft != bins:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match n_fft when onesided=False, but got {bins}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{call} : expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft")
    if window is not None and window.shape != (width,):
        raise RuntimeError(
            f"{call} : Invalid window shape. window has to be 1D and length of `win_length`"
        )
    if return_complex and one_sided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and is_complex(window.dtype):
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
