"""A trainer that need not know on which host it runs: gradient descent with momentum, one line of JSON per step."""
import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--momentum", type=float)
given = parser.parse_args()

x, y, vx, vy = -1.0, 1.0, 0.0, 0.0
for step in range(30):
    slope_x, slope_y = -2 * (1 - x) - 40 * x * (y - x * x), 20 * (y - x * x)
    vx, vy = given.momentum * vx - given.lr * slope_x, given.momentum * vy - given.lr * slope_y
    x, y = max(-5.0, min(5.0, x + vx)), max(-5.0, min(5.0, y + vy))
    print(json.dumps({"step": step, "loss": (1 - x) ** 2 + 10 * (y - x * x) ** 2}), flush=True)
