"""Train a graph attention network: of the karate club's split only the two leaders are told."""

import sys

if "--torch" in sys.argv:
    import torch
else:
    import leafax as torch  # type: ignore[no-redef]

from karate import edges, sides
from loop import Log, arguments
from repeatable import Draws, fill

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


class GATLayer(nn.Module):
    """Each node takes the mean of its neighbours, weighted by attention along the edges."""

    def __init__(self, inputs: int, outputs: int, heads: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, heads * outputs, bias=False)
        self.source = nn.Parameter(torch.empty(1, heads, outputs))
        self.target = nn.Parameter(torch.empty(1, heads, outputs))
        self.bias = nn.Parameter(torch.zeros(heads * outputs))
        self.heads = heads
        for weight in (self.linear.weight, self.source, self.target):
            nn.init.xavier_uniform_(weight)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Return `float[nodes, heads * outputs]`.

        Args:
            x: `float[nodes, inputs]`.
            edge_index: sources and targets, `int64[2, edges]`.
        """
        source, target = edge_index
        nodes = self.linear(x).view(len(x), self.heads, -1)
        scores = (nodes * self.source).sum(-1)[source] + (nodes * self.target).sum(-1)[target]
        weights = softmax_by(F.leaky_relu(scores, 0.2), target, len(x))
        mixed = torch.zeros_like(nodes).index_add(0, target, weights[..., None] * nodes[source])
        return mixed.flatten(1) + self.bias


def softmax_by(scores: torch.Tensor, group: torch.Tensor, groups: int) -> torch.Tensor:
    """Return the softmax of `float[edges, heads]` among the edges of each `group`."""
    where = group[:, None].expand_as(scores)
    low = scores.new_full((groups, scores.shape[1]), -torch.inf)
    top = low.scatter_reduce(0, where, scores.detach(), reduce="amax")
    exponentials = (scores - top[group]).exp()
    sums = torch.zeros_like(top).scatter_add_(0, where, exponentials)
    return exponentials / sums[group]


class GAT(nn.Module):
    """Two layers of graph attention over a vector of its own for each node."""

    def __init__(self, nodes: int, width: int = 8, heads: int = 4, classes: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(nodes, 16))
        self.layer1 = GATLayer(16, width, heads)
        self.layer2 = GATLayer(heads * width, classes, heads=1)

    def forward(self, edge_index: torch.Tensor) -> torch.Tensor:
        """Return `float[nodes, classes]`."""
        return self.layer2(F.elu(self.layer1(self.embedding, edge_index)), edge_index)


def main(steps: int = 200, seed: int = 0, check: bool = False) -> list[float]:
    """Train, print how many members' sides are told rightly, and return the losses."""
    Draws(torch, seed, check)
    edge_index, labels = torch.tensor(edges()).t(), torch.tensor(sides())
    known = torch.zeros(len(labels), dtype=torch.bool)
    known[[0, 33]] = True

    model = GAT(len(labels))
    if check:
        fill(model, seed)
    optimizer = optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)

    log = Log(steps)
    for _ in range(steps):
        loss = F.cross_entropy(model(edge_index)[known], labels[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())
    with torch.no_grad():
        right = (model(edge_index).argmax(1) == labels).sum()
    print(f"{right.item()} of {len(labels)} members are on the side they chose")
    return log.losses


if __name__ == "__main__":
    main(**arguments(steps=200))
