"""Containers of modules and of parameters, as PyTorch has them."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

from helpers.module_scripts import Said, agree


def test_sequential() -> None:
    def script(t: Any, said: Said) -> None:
        nn = t.nn
        s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Identity())
        named = nn.Sequential(OrderedDict(one=nn.ReLU(), two=nn.Tanh()))
        said(s, named, s[1:], named[:1], s[-1], named[1], len(s), [type(x).__name__ for x in s])
        said(s + named, 2 * named, nn.Sequential(), s(t.tensor([-1.0, 1.0])))
        said.refused(
            lambda: s[3], lambda: s[-4], lambda: s + [1], lambda: s * 0, lambda: s * 1.5,
            lambda: s.insert(9, nn.ReLU()), lambda: s["a"], lambda: nn.Sequential(1),
            lambda: s.append(1), lambda: s.__iadd__([1]),
        )  # fmt: skip
        s[0] = nn.Sigmoid()
        said(s.pop(1), s.append(nn.ReLU()), s.insert(0, nn.Tanh()), s.insert(-1, nn.Identity()))
        del s[1:3]
        s += named
        s *= 2
        said(s, s.extend([nn.ReLU()]), [n for n in dir(s) if n.isdigit()])
        del named[0]
        said(named, list(named.state_dict()))

    agree(script)


def test_module_list_and_dict() -> None:
    def script(t: Any, said: Said) -> None:
        nn = t.nn
        m = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh(), nn.Sequential(nn.ReLU(), nn.Tanh())])
        said(m, m[1:3], m[-1], len(m), m + [nn.Tanh()], nn.ModuleList())
        said.refused(
            lambda: m[4], lambda: m.extend(1), lambda: m.append(1), lambda: m(t.ones(1)),
            lambda: nn.ModuleList(1),
        )  # fmt: skip
        m.insert(1, nn.Sigmoid())
        m[0] = nn.Tanh()
        del m[2], m[-1]
        m += [nn.ReLU()]
        said(m, m.pop(0), [n for n, _ in m.named_children()])
        d = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        d.update([("c", nn.Identity())])
        said(d, list(d), "a" in d, len(d), d.pop("a"), list(d.items()), list(d.keys()))
        said.refused(
            lambda: d["x"], lambda: d.update(1), lambda: d.update([1]), lambda: d.update(["abc"]),
            lambda: d.update([("a",)]), lambda: nn.ModuleDict({"x.y": nn.ReLU()}),
            lambda: d.pop("x"), lambda: nn.ModuleDict({"keys": nn.ReLU()}),
        )  # fmt: skip
        d.clear()
        said(d, list(d.values()))

    agree(script)


def test_parameter_list_and_dict() -> None:
    def script(t: Any, said: Said) -> None:
        nn, p = t.nn, t.nn.Parameter(t.ones(2, 3))
        x = nn.ParameterList([p, t.zeros(1), "word"])
        said(x, len(x), x[0] is p, type(x[1]).__name__, x[1:], [n for n, _ in x.named_parameters()])
        x[1] = t.ones(4)
        x += [p]
        said(x.append(3.5), x[-2] is p, [n for n in dir(x) if n.isdigit()])
        said.refused(lambda: x[9], lambda: x(1), lambda: x.extend(p), lambda: x.extend(1))
        d = nn.ParameterDict({"b": t.zeros(1), "a": p, "n": 1})
        said(d, list(d), "a" in d, d.get("x", 5), d.setdefault("c", t.ones(1)), len(d))
        said(list(reversed(d)), d.pop("n"), d.popitem()[0], list(d.keys()), d.copy())
        said(d | nn.ParameterDict([("z", t.ones(1))]), d.fromkeys(["k"], 2), list(d.items()))
        d |= {"q": t.ones(2)}
        said.refused(
            lambda: d["x"], lambda: d(1), lambda: d.update(1), lambda: d.update([1]),
            lambda: d.update([("a",)]), lambda: d.pop("x"),
        )  # fmt: skip
        said(list(d.state_dict()), copy.deepcopy(d))
        said.refused(lambda: d.__setitem__(1, p))

    agree(script)


def test_container() -> None:
    def script(t: Any, said: Said) -> None:
        said(t.nn.Container(a=t.nn.ReLU()))

    agree(script)
