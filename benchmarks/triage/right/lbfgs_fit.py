"""Fit a small attention regressor to a smooth function with L-BFGS and a closure; full batch on purpose."""
import torch
from torch import nn

torch.manual_seed(2)
torch.set_default_dtype(torch.float64)


def target(x):
    return torch.sin(3 * x) * torch.exp(-0.3 * x ** 2)


class KernelAttention(nn.Module):
    """Attend from the point asked for to learnt landmarks."""

    def __init__(self, landmarks=16, width=12):
        super().__init__()
        self.keys = nn.Parameter(torch.linspace(-3, 3, landmarks).unsqueeze(1))
        self.values = nn.Parameter(0.1 * torch.randn(landmarks, width))
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.out = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        scores = -((x - self.keys.t()) ** 2) * self.log_scale.exp()
        return self.out(scores.softmax(dim=-1) @ self.values)


x_train = 6 * torch.rand(200, 1) - 3
y_train = target(x_train) + 0.02 * torch.randn(200, 1)
x_test = torch.linspace(-2.8, 2.8, 101).unsqueeze(1)
y_test = target(x_test)

net = KernelAttention()
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=8, history_size=20, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = criterion(net(x_train), y_train) + 1e-6 * sum(p.square().sum() for p in net.parameters())
    loss.backward()
    return loss


for epoch in range(40):
    loss = optimizer.step(closure)
    if epoch % 8 == 7:
        with torch.no_grad():
            error = criterion(net(x_test), y_test)
        print(f"epoch {epoch + 1:2d} before the step {loss.item():.5f} test {error.item():.5f}")
