"""MobileNetV2, built and named as torchvision's, so that its files' weights fit."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

nn = torch.nn
STAGES = [  # expansion, channels, blocks, stride of the first
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]


def conv_bn(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    """Return a convolution that keeps the size (but for `stride`), batch norm, and ReLU6."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """Widen by 1x1, filter each channel by 3x3, narrow by 1x1; add the input if it fits."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        widened = [] if expansion == 1 else [conv_bn(inputs, hidden, 1)]
        self.use_res_connect = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            *widened,
            conv_bn(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, outputs, height / stride, width / stride]`."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """The network at width 1; its last layer is `classifier[1]`."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers, channels = [conv_bn(3, 32, 3, stride=2)], 32
        for expansion, outputs, blocks, stride in STAGES:
            for i in range(blocks):
                first = stride if i == 0 else 1
                layers.append(InvertedResidual(channels, outputs, first, expansion))
                channels = outputs
        layers.append(conv_bn(channels, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=0.2), nn.Linear(1280, classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `float[batch, classes]` for `float[batch, 3, height, width]`."""
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


def mobilenet_v2() -> MobileNetV2:
    """Return a MobileNetV2 for the 1,000 classes of ImageNet, with weights of chance."""
    return MobileNetV2()
