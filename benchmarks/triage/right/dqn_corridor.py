"""Deep Q-learning (double DQN) in a grid with walls: replay memory, epsilon that falls, soft target updates."""
import math
import random
from collections import deque, namedtuple
from itertools import count

import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
MAP = ["....#", ".##.#", "...#.", ".#...", ".#.#G"]
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]
BATCH_SIZE, GAMMA, TAU, LR = 64, 0.95, 0.02, 1e-3
EPS_START, EPS_END, EPS_DECAY = 0.9, 0.05, 400


class Grid:
    def __init__(self):
        self.free = [(r, c) for r in range(5) for c in range(5) if MAP[r][c] == "."]

    def reset(self):
        self.at = random.choice(self.free)
        return self.observe()

    def observe(self):
        r, c = self.at
        out = torch.zeros(10)
        out[r] = out[5 + c] = 1.0
        return out.unsqueeze(0)

    def step(self, action):
        r, c = self.at[0] + MOVES[action][0], self.at[1] + MOVES[action][1]
        if 0 <= r < 5 and 0 <= c < 5 and MAP[r][c] != "#":
            self.at = (r, c)
        done = MAP[self.at[0]][self.at[1]] == "G"
        return self.observe(), 1.0 if done else -0.02, done


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 64)
        self.layer2 = nn.Linear(64, 64)
        self.layer3 = nn.Linear(64, n_actions)

    def forward(self, x):
        x = torch.relu(self.layer1(x))
        return self.layer3(torch.relu(self.layer2(x)))


random.seed(3)
torch.manual_seed(3)
env = Grid()
policy_net, target_net = DQN(10, 4), DQN(10, 4)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=LR, amsgrad=True)
memory = ReplayMemory(5000)
steps_done = 0


def select_action(state):
    global steps_done
    eps = EPS_END + (EPS_START - EPS_END) * math.exp(-steps_done / EPS_DECAY)
    steps_done += 1
    if random.random() < eps:
        return torch.tensor([[random.randrange(4)]])
    with torch.no_grad():
        return policy_net(state).max(1).indices.view(1, 1)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor([s is not None for s in batch.next_state])
    non_final = torch.cat([s for s in batch.next_state if s is not None])
    states, actions, rewards = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    q = policy_net(states).gather(1, actions)
    next_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        best = policy_net(non_final).argmax(1, keepdim=True)
        next_values[non_final_mask] = target_net(non_final).gather(1, best).squeeze(1)
    loss = nn.functional.smooth_l1_loss(q, (rewards + GAMMA * next_values).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


@torch.no_grad()
def success(limit=15):
    won = 0
    for start in env.free:
        env.at = start
        for _ in range(limit):
            _, _, done = env.step(policy_net(env.observe()).argmax(1).item())
            if done:
                won += 1
                break
    return won / len(env.free)


print(f"before: reaches the goal from {success():.0%} of the places")
for episode in range(120):
    state = env.reset()
    for t in count():
        action = select_action(state)
        observation, reward, done = env.step(action.item())
        next_state = None if done else observation
        memory.push(state, action, next_state, torch.tensor([reward]))
        state = next_state
        loss = optimize_model()
        with torch.no_grad():
            for tp, pp in zip(target_net.parameters(), policy_net.parameters()):
                tp.lerp_(pp, TAU)
        if done or t >= 40:
            break
    if episode % 30 == 29:
        print(f"episode {episode + 1}: loss {loss:.4f}, reaches the goal from {success():.0%} of the places")
