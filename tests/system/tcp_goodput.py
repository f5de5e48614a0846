#!/usr/bin/env python3
"""Goodput of one TCP flow, and the shares of two, over a path with loss, reordering or a bottleneck, ours and Linux's.

usage: tcp_goodput.py BUILD [--paths xdp,bulk] [--rounds 9] [--time 4] [--seed 1] [loss|reorder|share ...]

Needs root, and the programs stream_peer and tcp_path of the build folder. Every round measures each contestant once, with
the same seed of the path, in an order that changes from round to round; medians are printed, and the quartiles.
"""
import argparse
import os
import re
import statistics
import subprocess
import time

A, B, M = (f"ncgp{os.getpid()}{side}" for side in "abm")
PATHS = {
    "loss": ["--delay", "10", "--loss", "0.01"],
    "reorder": ["--delay", "10", "--reorder", "0.03", "--reorder-by", "3", "--rate", "100", "--queue", "1000000"],
    "share": ["--delay", "10", "--rate", "50", "--queue", "125000"],
}


def sh(text):
    subprocess.run(text, shell=True, check=True)


def make_namespaces():
    for name in (A, B, M):
        sh(f"ip netns add {name}")
    for name, address, inner in ((A, "10.77.0.1", "x0"), (B, "10.77.0.2", "x1")):
        sh(f"ip -n {name} link add eth0 type veth peer name {inner} netns {M}")
        sh(f"ip netns exec {name} ethtool -K eth0 tx off gso off tso off >/dev/null")
        sh(f"ip -n {name} addr add {address}/24 dev eth0 && ip -n {name} link set eth0 up && ip -n {name} link set lo up")
        sh(f"ip netns exec {M} sysctl -qw net.ipv6.conf.{inner}.disable_ipv6=1")
        # By route, because a kernel may not allow every namespace to choose its default.
        sh(f"ip -n {name} route replace 10.77.0.0/24 dev eth0 src {address} congctl cubic")
        sh(f"ip netns exec {name} sysctl -qw net.ipv4.tcp_no_metrics_save=1")
        sh(f"ip -n {M} link set {inner} up")
    time.sleep(1)


def start(namespace, *command):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


class Running:
    """A program that has said that it is ready; ended with SIGTERM."""

    def __init__(self, namespace, sign, *command):
        self.program = start(namespace, *command)
        line = self.program.stdout.readline()
        if sign not in line:
            raise SystemExit(f"{command}: {line}{self.program.stdout.read()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.terminate()
        self.said = self.program.communicate()[0]


class Bench:
    def __init__(self, options):
        self.options = options
        self.peer = os.path.join(options.build, "tests/system/stream_peer")
        self.path = os.path.join(options.build, "tests/system/tcp_path")

    def carrier(self, scenario, seed):
        return Running(M, "carries", self.path, "x0", "x1", *PATHS[scenario], "--seed", str(seed))

    def serve(self, namespace, path, port="80"):
        return Running(namespace, "serves", self.peer, "--path", path, "--device", "eth0", "--wait", "block", "serve",
                       "--http-port", port, "--echo-port", "1" + port)

    def get(self, namespace, path, address, port="80", warm_up=0):
        return start(namespace, self.peer, "--path", path, "--device", "eth0", "--wait", "block", "get", "--time",
                     str(self.options.time), "--warm-up", str(warm_up), f"http://{address}:{port}/100000000000")

    @staticmethod
    def rate(program):
        said = program.communicate()[0]
        return float(re.search(r"([\d.]+) Mbit/s", said).group(1))

    def one_flow(self, scenario, seed, sender, receiver):
        """Always from A to B, so that all see the same dice."""
        with self.carrier(scenario, seed), self.serve(A, sender):
            return self.rate(self.get(B, receiver, "10.77.0.1"))

    def two_flows(self, seed, path, downwards):
        """Our share of a bottleneck that Linux's flow from, or to, the same host has too."""
        warm_up, ports = 4, ("80", "81")  # s: until the two have found their shares
        with self.carrier("share", seed):
            if downwards:
                with self.serve(A, path), self.serve(A, "kernel", ports[1]):
                    flows = [self.get(B, "kernel", "10.77.0.1", port, warm_up) for port in ports]
                    ours, linux = [self.rate(flow) for flow in flows]
            else:
                with self.serve(B, "kernel"):
                    flows = [self.get(A, each, "10.77.0.2", warm_up=warm_up) for each in (path, "kernel")]
                    ours, linux = [self.rate(flow) for flow in flows]
        return 100 * ours / (ours + linux), ours + linux


def row(name, values, unit):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"| {name} | {middle:.2f} {unit} | {low:.2f} to {high:.2f} |"


def goodput(bench, scenario):
    contestants = [("kernel", "kernel")]
    for path in bench.options.paths:
        contestants += [(path, "kernel"), ("kernel", path)]
    found = {contestant: [] for contestant in contestants}
    for turn in range(bench.options.rounds):
        first = turn % len(contestants)
        for contestant in contestants[first:] + contestants[:first]:
            found[contestant].append(bench.one_flow(scenario, bench.options.seed + turn, *contestant))
    base = found[contestants[0]]
    for contestant, values in found.items():
        ratio = statistics.median(values) / statistics.median(base)
        print(row(f"{contestant[0]} -> {contestant[1]}", values, "Mbit/s"), f"{ratio:.2f} |", flush=True)


def share(bench):
    for path in ["kernel"] + bench.options.paths:
        for downwards in (True, False):
            results = [bench.two_flows(bench.options.seed + turn, path, downwards) for turn in range(bench.options.rounds)]
            name = f"{path} sends" if downwards else f"{path} receives"
            print(row(name, [r[0] for r in results], "%"), f"{statistics.median(r[1] for r in results):.1f} Mbit/s |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("scenarios", nargs="*", default=["loss", "reorder", "share"])
    parser.add_argument("--paths", type=lambda text: text.split(","), default=["xdp", "bulk"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--time", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_intermixed_args()
    bench = Bench(options)
    try:
        make_namespaces()
        for scenario in options.scenarios:
            print(f"\n{scenario}: tcp_path {' '.join(PATHS[scenario])}", flush=True)
            share(bench) if scenario == "share" else goodput(bench, scenario)
    finally:
        for name in (A, B, M):
            subprocess.run(["ip", "netns", "del", name])


main()
