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

SNIPPETS = {
    name.lower(): code
    for name, code in list(globals().items())
    if name.isupper() and isinstance(code, str)
}


def run(code: str, lib: Any) -> tuple[str, list[tuple[str, str]], tuple[str, str] | None]:
    """What the code prints, warns and raises with `lib` as `torch`."""
    out = io.StringIO()
    raised = None
    # `import torch.autograd as autograd` and `from torch.autograd import Variable` too.
    names = {n: m for n, m in sys.modules.items() if n == "torch" or n.startswith("torch.")}
    stand_in: dict[str, types.ModuleType] = {"torch": lib, "torch.autograd": lib.autograd}
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            sys.modules.update(stand_in)
            exec(compile(code, "snippet", "exec"), {"torch": lib})
        except Exception as e:
            raised = (type(e).__name__, str(e))
        finally:
            sys.modules.update(names)
    warned = [
        (w.category.__name__, re.sub(r" \(Triggered .*\)$", "", str(w.message))) for w in caught
    ]
    text = re.sub(r"0x[0-9a-f]+", "0x", out.getvalue())
    return text, warned, raised


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    expected = run(SNIPPETS[name], torch)
    for _ in range(3):  # anew, and from the recorder's memory
        assert run(SNIPPETS[name], leafax) == expected


def test_snippets_print_something() -> None:
    quiet = [n for n, code in SNIPPETS.items() if run(code, torch)[0] == ""]
    assert quiet == ["modified", "not_scalar"]  # these raise
