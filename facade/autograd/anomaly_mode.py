"""PyTorch's `torch.autograd.anomaly_mode`: a NaN in backward names the op that made it."""

from ._anomaly import detect_anomaly as detect_anomaly
from ._anomaly import set_detect_anomaly as set_detect_anomaly
