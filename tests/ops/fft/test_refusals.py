"""Errors of `torch.fft`, `stft` and `istft` for arguments that do not fit, as sessions."""

from __future__ import annotations

from textwrap import dedent

import pytest
from helpers.sessions import compare

START = """
    F = torch.fft; x = torch.arange(12.0).view(3, 4); z = x + 1j; h = x.half(); b = x.bfloat16()
    S = torch.stft; I = torch.istft; w = torch.ones(4); s = torch.ones(3, 5, dtype=torch.cfloat)
"""

SESSIONS = {
    "no transforms of half precision": """
        [f(t) for f in (F.fft, F.hfft) for t in (z,)][1].shape
        F.fft(h); F.ifft(h); F.rfft(b); F.irfft(h); F.hfft(b); F.ihfft(h); F.fft(h, norm="a")
        F.fft(h, dim=3); F.fft(h, n=0); F.fft2(h); F.ifft2(b); F.rfft2(h); F.irfft2(h)
        F.hfft2(h); F.ihfft2(b); F.fftn(h, dim=5); F.fftn(h, norm="a"); F.rfftn(h, dim=5)
        S(h[0], 4, window=w, return_complex=True)
    """,
    "which is looked at first, and by which name": """
        F.rfft(z, norm="a", dim=4); F.ihfft(z, n=0); F.rfft2(z); F.rfftn(z, dim=5); F.ihfft2(z)
        F.ihfftn(z, norm="a"); F.ihfft2(z, dim=()); F.rfft2(x, dim=()); F.irfft2(x, dim=[], s=[])
        F.hfft2(z, dim=()); F.irfftn(h, dim=()); F.irfftn(h, s=(3, 0)); F.irfftn(x, s=(3, 0))
        F.irfftn(x, s=(3, -2)); F.irfftn(x[:, :1], s=(3, -1)); F.rfftn(x, dim=5, norm="a")
        F.fft2(x[:, :0]); F.ifftn(x[:, :0]); F.rfft2(x[:0]); F.ihfftn(x[:, :0]); F.hfft2(x[:, :0])
        F.fftn(x[:0], s=(2, 2)).shape; F.rfftn(x[:0], s=(2, 2)).shape
    """,
    "frequencies into a tensor": """
        F.fftfreq(5, out=torch.ones(2)); F.rfftfreq(5, out=torch.ones(())); F.fftfreq(-1)
        F.fftfreq(5, out=torch.ones(5), dtype=torch.double); F.fftfreq(5, out=torch.ones(0))
        F.rfftfreq(5, out=torch.ones(5).double()); F.fftfreq(4, out=torch.ones(4).double())
        F.fftfreq(5, out=torch.ones(5, requires_grad=True)); F.fftfreq(5, out=3)
    """,
    "signals that do not fit": """
        S(x[0], -1, return_complex=True); S(x[0], -4, 1, return_complex=True, pad_mode="constant")
        S(z[0], 4, onesided=True, center=False); S(x[0], 4, window=w + 0j, onesided=True)
        S(z[0, :2], 4, window=w + 0j, center=False)
        S(x[0], 4, pad_mode="a", return_complex=True); S(x[0, 0], 4, return_complex=True)
        S(x[0, 0], 4, pad_mode="constant", return_complex=True); S(b[0, :2], 4, center=False)
        S(b[0, :2], 4, center=False, return_complex=True); S(x[0, :0], 4, return_complex=True)
        S(x[0], 4, return_complex=True, align_to_window=True); S(x[:0], 4, return_complex=True)
        S(x[None, None], 4, return_complex=True)
        S(x[0, :1], 4, pad_mode="circular", return_complex=True)
    """,
    "signals that cannot be told": """
        I(s, 4, window=w + 0j); I(s[:, 0], 4); I(s[0, 0], 4); I(s[:, :1], 4, window=w)
        I(s, 4, window=w + 0j, onesided=False, return_complex=True); I(s, 4, window=w, length=0)
        I(s, 4, window=w, length=-1); I(s, 4, window=w, length=-3); I(s[:1], 1, 1, window=w[:1])
        I(torch.ones(4, 5) + 0j, 4, window=w + 0j)
        I(torch.ones(4, 5) + 0j, 4, window=w + 0j, return_complex=True)
    """,
    "signals that end early": """
        I(s, 4, window=w, length=6); I(s, 4, window=w, length=7); s.istft(4, window=w, length=8)
        I(s, 4, window=w, length=8, center=False); I(s, 4, window=w, length=9, center=False)
        I(input=s, n_fft=4, hop_length=2, window=w, length=20)
    """,
}  # fmt: skip


@pytest.mark.parametrize("name", SESSIONS)
def test_session(name: str) -> None:
    compare(dedent(START) + dedent(SESSIONS[name]))
