"""A network line in user space, for kernels without netem: frames pass between two TAP devices, each way with its own
queue: a rate, then a delay with jitter (frames stay in order), and losses.

usage: line.py TAP_A TAP_B READY_FD DELAY_MS JITTER_MS LOSS_PERCENT BITS_PER_SECOND
"""
import collections
import errno
import fcntl
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, TAP_WITHOUT_HEADER = 0x400454CA, 0x0002 | 0x1000
BUFFER_SECONDS = 0.2  # of frames that wait for the rate; further ones are dropped, as a router does


class Way:
    """Frames on their way to one device."""

    def __init__(self, device, delay, jitter, loss, rate):
        self.device, self.delay, self.jitter, self.loss, self.rate = device, delay, jitter, loss, rate
        self.frames = collections.deque()  # (due, frame)
        self.free_at = 0.0  # when the line has sent all that came before

    def take(self, frame, now):
        if self.loss and random.random() < self.loss:
            return
        leaves = now
        if self.rate:
            leaves = max(now, self.free_at)
            if leaves - now > BUFFER_SECONDS:
                return
            self.free_at = leaves = leaves + len(frame) * 8 / self.rate
        due = leaves + self.delay + (random.uniform(0, self.jitter) if self.jitter else 0)
        if self.frames:
            due = max(due, self.frames[-1][0])
        self.frames.append((due, frame))

    def deliver(self, now):
        while self.frames and self.frames[0][0] <= now:
            try:
                os.write(self.device, self.frames.popleft()[1])
            except OSError as error:
                if error.errno == errno.EBADFD:
                    sys.exit(0)  # the host is gone, and the device with it


def tap(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP_WITHOUT_HEADER))
    return device


def main():
    devices = [tap(sys.argv[1]), tap(sys.argv[2])]
    delay, jitter, loss, rate = (float(text) for text in sys.argv[4:8])
    ways = {a: Way(b, delay / 1e3, jitter / 1e3, loss / 100, rate) for a, b in (devices, devices[::-1])}
    os.write(int(sys.argv[3]), b"+")
    os.close(int(sys.argv[3]))
    poll = select.epoll()
    for device in devices:
        poll.register(device, select.EPOLLIN)
    while True:
        next_due = min((way.frames[0][0] for way in ways.values() if way.frames), default=None)
        wait = -1 if next_due is None else max(0.0, next_due - time.monotonic())
        for device, _ in poll.poll(wait):
            for _ in range(128):
                try:
                    frame = os.read(device, 65536)
                except BlockingIOError:
                    break
                except OSError as error:
                    if error.errno == errno.EBADFD:
                        sys.exit(0)
                    break
                ways[device].take(frame, time.monotonic())
        now = time.monotonic()
        for way in ways.values():
            way.deliver(now)


main()
