"""The first snippets that people try, from posts and documentation, old and new.

Each runs to the printed letter as under torch; where an old text's output is out of date, torch
2.13 is right. Random inputs are replaced by fixed ones where values are printed.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import types
import warnings
from typing import Any

import pytest
import torch
from helpers.torch_style import load

import leafax

LEAVES = """
from torch.autograd import Variable
A = Variable(torch.randn(10,10)) # this is a leaf node
B = 2 * A # this is not a leaf node
w = Variable(torch.randn(10,10)) # this is a leaf node
C = A.mm(w) # this is not a leaf node
for t in (A, B, w, C):
    print(t.is_leaf, t.requires_grad, t.grad_fn, t.shape, t.dtype)
"""

INTERMEDIATE = """
A = torch.tensor([1,2,3])
B = torch.tensor([2,3,4.], requires_grad=True)
C = A * B
D = torch.sum(C)

D.backward()
print(C.grad)
"""

INTERMEDIATE_GRAD = """
import torch.autograd as autograd
A = torch.tensor([1,2,3])
B = torch.tensor([2,3,4.], requires_grad=True)
C = A * B
D = torch.sum(C)
C_grad = autograd.grad(D, C, retain_graph=True)
print(C_grad)
"""

MODIFIED = """
A = torch.tensor([1,2,3])
B = torch.tensor([2,3,4.], requires_grad=True)
C = A * B + B
D = torch.sum(C)
A[0] = .1
D.backward()
"""

MODIFIED_BEFORE = """
A = torch.tensor([1,2,3])
A[0] = .1

B = torch.tensor([2,3,4.], requires_grad=True)

C = A * B + B
D = torch.sum(C)
D.backward()
print(B.grad)
"""

TWICE = """
A = torch.tensor([1,2,3])
A[0] = .1

B = torch.tensor([2,3,4.], requires_grad=True)
# first backward
C = A * B + B
D = torch.sum(C)
D.backward()
print(B.grad)
# second backward
B.grad = None
C.grad = None
D.backward()
print(B.grad)
"""

RETAINED = """
A = torch.tensor([1,2,3])
A[0] = .1

B = torch.tensor([2,3,4.], requires_grad=True)

C = A * B + B
D = torch.sum(C)

# first option
D.backward(retain_graph=True)
print(B.grad)

# second option
C = A * B + B
D = torch.sum(C)
B.grad = None
C.grad = None
D.backward()
print(B.grad)
"""

NO_GRAD = """
A = torch.tensor([1,2,3])
B = torch.tensor([2,3,4.], requires_grad=True)

C = A * B + B
D = torch.sum(C)

print(f"before set no_grad: ", D.requires_grad)

# model.eval()
with torch.no_grad():
    C = A * B + B
    D = torch.sum(C)
    print(f"after set no_grad: ", D.requires_grad)
"""

REQUIRES_GRAD = """
from torch.autograd import Variable
x = Variable(torch.randn(5, 5))
y = Variable(torch.randn(5, 5))
z = Variable(torch.randn(5, 5), requires_grad=True)
a = x + y
print(a.requires_grad)
b = a + z
print(b.requires_grad)
"""

VOLATILE = """
from torch.autograd import Variable
j = Variable(torch.randn(5,5), volatile=True)
k = Variable(torch.randn(5,5))
m = Variable(torch.randn(5,5))
n = k+m
print(n.volatile)
o = j+k
print(o.volatile)
"""

TRACES = """
z_theta = [torch.zeros(2, 3), torch.ones(3)]
params = [torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)]
(params[0] * params[1] * 2).sum().backward()
gamma, lamda, l, alpha, delta = 0.9, 0.8, 0.5, 0.1, 2.0
for i, p in enumerate(params):
    z_theta[i][: ] = gamma * lamda * z_theta[i] + l * p.grad
    p.grad[: ] = alpha * delta * z_theta[i]
    print(z_theta[i], p.grad, p.grad._version)
"""

SAVED_SELF = """
x = torch.randn(5, requires_grad = True)
y = x.pow(2)
print(x.equal(y.grad_fn._saved_self)) # True
print(x is y.grad_fn._saved_self) # True
"""

SAVED_RESULT = """
x = torch.randn(5, requires_grad = True)
y = x.exp()
print(y.equal(y.grad_fn._saved_result)) # True
print(y is y.grad_fn._saved_result) # False
"""

THREADS = """
import threading
grads = []
# Define a train function to be used in different threads
def train_fn():
    x = torch.ones(5, 5, requires_grad = True)
    # forward
    y = (x + 3) * (x + 4) * 0.5
    # backward
    y.sum().backward()
    # potential optimizer update
    grads.append(x.grad)
# User write their own threading code to drive the train_fn
threads = []
for _ in range(10):
    p = threading.Thread(target = train_fn, args = ())
    p.start()
    threads.append(p)
for p in threads:
    p.join()
print(grads)
"""

OLD_CONSTRUCTORS = """
tsr = torch.Tensor(3, 5)
print(tsr.shape, tsr.dtype, tsr.requires_grad)
t1 = torch.randn((3, 3), requires_grad = True)
t2 = torch.FloatTensor(3, 3) # No way to specify requires_grad while initiating
t2.requires_grad = True
print(t1.requires_grad, t2.requires_grad, t2.is_leaf)
"""

GRAD_FN = """
a = torch.randn((3, 3), requires_grad = True)
w1 = torch.randn((3, 3), requires_grad = True)
w2 = torch.randn((3, 3), requires_grad = True)
w3 = torch.randn((3, 3), requires_grad = True)
w4 = torch.randn((3, 3), requires_grad = True)
b = w1 * a
c = w2 * a
d = w3 * b + w4 * c
L = 10 - d
print("The grad fn for a is", a.grad_fn)
print("The grad fn for d is", d.grad_fn)
"""

NOT_SCALAR = """
a = torch.randn((3, 3), requires_grad = True)
w1 = torch.randn((3, 3), requires_grad = True)
w2 = torch.randn((3, 3), requires_grad = True)
w3 = torch.randn((3, 3), requires_grad = True)
w4 = torch.randn((3, 3), requires_grad = True)
b = w1 * a
c = w2 * a
d = w3 * b + w4 * c
L = (10 - d)
L.backward()
"""

LEAF_FLAGS = """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2
z = y + 1
z.backward()
print(x.grad)
print(y.grad)
print(x.is_leaf)
print(y.is_leaf)
print(x.grad_fn)
print(y.grad_fn)
"""

ALL_GRADS = """
a = torch.Tensor([1,2]).requires_grad_()
b = torch.Tensor([3,4]).requires_grad_()
d = torch.Tensor([2]).requires_grad_()
c = a + b
e = c * d
o = e.sum()

o.backward()
print(a.grad)
print(b.grad)
print(c.grad)
print(d.grad)
print(e.grad)
print(o.grad)
"""

RETAIN_GRAD = """
x=torch.arange(10,dtype=torch.float32,requires_grad=True).reshape(10,1)
w=torch.arange(10,dtype=torch.float32,requires_grad=True).reshape(1,10)
y=w@x
x.retain_grad()
w.retain_grad()
y.backward()
print(x.is_leaf)
print(w.is_leaf)
print(x.grad)
print(w.grad)
"""

TEMP_FILES = """
import os, tempfile, uuid
tmp_dir = tempfile.mkdtemp()
class SelfDeletingTempFile():
    def __init__(self):
        self.name = os.path.join(tmp_dir, str(uuid.uuid4()))
    def __del__(self):
        os.remove(self.name)
def pack_hook(tensor):
    temp_file = SelfDeletingTempFile()
    torch.save(tensor, temp_file.name)
    return temp_file
def unpack_hook(temp_file):
    return torch.load(temp_file.name)
x = torch.tensor([1., -2., 3., 0., 0.5], requires_grad=True)
y = x.pow(2)
y.grad_fn._raw_saved_self.register_hooks(pack_hook, unpack_hook)
print(len(os.listdir(tmp_dir)))
print(x.equal(y.grad_fn._saved_self), x is y.grad_fn._saved_self)
y.sum().backward()
print(x.grad, len(os.listdir(tmp_dir)))
os.rmdir(tmp_dir)
"""

LARGE_ON_DISK = """
import os, tempfile, uuid
from torch import nn
tmp_dir = tempfile.mkdtemp()
class SelfDeletingTempFile():
    def __init__(self):
        self.name = os.path.join(tmp_dir, str(uuid.uuid4()))
    def __del__(self):
        os.remove(self.name)
# Only save on disk tensors that have size >= 1000
SAVE_ON_DISK_THRESHOLD = 1000
def pack_hook(x):
    if x.numel() < SAVE_ON_DISK_THRESHOLD:
        return x
    temp_file = SelfDeletingTempFile()
    torch.save(x, temp_file.name)
    return temp_file
def unpack_hook(tensor_or_sctf):
    if isinstance(tensor_or_sctf, torch.Tensor):
        return tensor_or_sctf
    return torch.load(tensor_or_sctf.name)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(40, 30)
    def forward(self, x):
        with torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook):
            output = self.linear(x).relu()
        return output
model = Model()
net = nn.DataParallel(model)
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.arange(p.numel()).view_as(p) % 7 - 3)
x = (torch.arange(50 * 40.).view(50, 40) % 5 - 2).requires_grad_()
output = net(x)
print(sorted(os.path.getsize(os.path.join(tmp_dir, f)) > 4000 for f in os.listdir(tmp_dir)))
output.sum().backward()
print(model.linear.bias.grad, model.linear.weight.grad.sum(), x.grad.sum())
del output
os.rmdir(tmp_dir)  # it is empty
print(type(net.module).__name__, [name for name, _ in net.named_parameters()])
"""

MODULE_TRACES = """
from torch import nn
model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.arange(p.numel()).view_as(p) / 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
z_theta = [torch.zeros_like(p) for p in model.parameters()]
gamma, lamda, l, alpha, delta = 0.5, 0.5, 0.5, 0.25, 2.0
for s in (torch.tensor([0., 1., 0.]), torch.tensor([1., 0., -1.])):
    optimizer.zero_grad()
    v = model(s)
    v.backward()
    for i, p in enumerate(model.parameters()):
        z_theta[i][: ] = gamma * lamda * z_theta[i] + l * p.grad
        p.grad[: ] = alpha * delta * z_theta[i]
    optimizer.step()
    print(v)
for z, p in zip(z_theta, model.parameters()):
    print(z, p.grad)
"""

SNIPPETS = {
    name.lower(): code
    for name, code in list(globals().items())
    if name.isupper() and isinstance(code, str)
}

# torchvision's models are those of examples/torch_scripts, as `pretrained` as NumPy's numbers are.
RESNET = """
from torch import nn, optim
model = torchvision.models.resnet18(pretrained=True)
for param in model.parameters():
    param.requires_grad = False

# Replace the last fully-connected layer
# Parameters of newly constructed modules have requires_grad=True by default
model.fc = nn.Linear(512, 100)

# Optimize only the classifier
optimizer = optim.SGD(model.fc.parameters(), lr=1e-2, momentum=0.9)
print(optimizer)
print(model)
print([name for name, p in model.named_parameters() if p.requires_grad])
print(model(torch.ones(2, 3, 32, 32)).requires_grad)
"""

MOBILENET = """
from torch import nn, optim
from torchvision import models
import torch

model = models.mobilenet_v2(pretrained=True)
for param in model.parameters():
    param.requires_grad = False

model.classifier[1] = nn.Linear(in_features=1280, out_features=2, bias=True)
optim = optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
x = torch.rand(4, 3, 32, 32)
y_p = model(x)
y_t = torch.randint(2, (4,))
print(f"before update")
print(model.features[1].state_dict()['conv.0.0.weight'][0])
head = model.classifier[1].state_dict()['weight'][0][:10].clone()
loss = nn.functional.cross_entropy(y_p, y_t)
loss.backward()
optim.step()
print(f"\\nafter update")
print(model.features[1].state_dict()['conv.0.0.weight'][0])
print((head == model.classifier[1].state_dict()['weight'][0][:10]).tolist())
print({name: tuple(p.grad.shape) for name, p in model.named_parameters() if p.grad is not None})
print(len(optim.state), len(optim.state_dict()['state']))
"""


def torchvision(lib: Any) -> types.ModuleType:
    """Return a module with the two models, made of `lib`'s layers."""
    own = ["--torch"] if lib is torch else []
    fill = load("repeatable").fill

    def filled(file: str, name: str) -> Any:
        def make(pretrained: bool) -> Any:
            assert pretrained
            model = getattr(load(file, *own), name)()
            fill(model, 0)
            return model

        return make

    module = types.ModuleType("torchvision")
    module.models = types.SimpleNamespace(  # type: ignore[attr-defined]
        resnet18=filled("resnet", "resnet18"), mobilenet_v2=filled("mobilenet", "mobilenet_v2")
    )
    return module


def run(code: str, lib: Any) -> tuple[str, list[tuple[str, str]], tuple[str, str] | None]:
    """Run the code with `lib` as `torch`; return its output, warnings and error."""
    out = io.StringIO()
    raised = None
    # `import torch.autograd as autograd` and `from torch.autograd import Variable` too.
    names = {n: m for n, m in sys.modules.items() if n == "torch" or n.startswith("torch.")}
    stand_in: dict[str, types.ModuleType] = {"torch": lib, "torch.autograd": lib.autograd}
    vision = torchvision(lib)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            sys.modules.update(stand_in, torchvision=vision)
            exec(compile(code, "snippet", "exec"), {"torch": lib, "torchvision": vision})
        except Exception as e:
            raised = (type(e).__name__, str(e))
        finally:
            sys.modules.update(names)
            del sys.modules["torchvision"]
    warned = [
        (w.category.__name__, re.sub(r" \(Triggered .*\)$", "", str(w.message))) for w in caught
    ]
    text = re.sub(r"0x[0-9a-f]+", "0x", out.getvalue())
    return text, warned, raised


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    expected = run(SNIPPETS[name], torch)
    for _ in range(3):  # anew, and from the recorder's memory
        assert run(SNIPPETS[name], leafax) == expected


@pytest.mark.quick(1)
@pytest.mark.parametrize("code", [RESNET, MOBILENET], ids=["resnet", "mobilenet"])
def test_frozen_model(code: str) -> None:
    said, warned, raised = run(code, leafax)
    assert (said, warned, raised) == run(code, torch)
    assert said and raised is None


def test_snippets_print_something() -> None:
    quiet = [n for n, code in SNIPPETS.items() if run(code, torch)[0] == ""]
    assert quiet == ["modified", "not_scalar"]  # these raise
