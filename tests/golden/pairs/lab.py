"""Two hosts a and b with something between them, in namespaces of their own, and tcpdump on both ends.

    unshare -n python3 lab.py relay|router|merge SNAPLEN FOLDER PLAN -- COMMAND...

The shell runs COMMAND in a once `iperf3 -s` listens in b. `relay`: relay.py carries the frames, no offloads. `router`: the
kernel forwards; a sends super-packets (TSO), the router's side to b does not, so it splits them; PLAN is then TBF's
arguments ("" for none), and FOLDER gets what `ip -s link` and `tc -s qdisc` count. `merge`: as `router`, but a sends plain
segments and b's GRO merges them before its capture. Needs root, iperf3, tcpdump, ethtool, nsenter.
"""

import pathlib
import subprocess
import sys

kind, snap, folder, plan = sys.argv[1:5]
command = sys.argv[6:]
out = pathlib.Path(folder)
out.mkdir(parents=True, exist_ok=True)
processes: list[subprocess.Popen[str]] = []


def start(arguments: list[str], ready: str = "", **pipes: object) -> subprocess.Popen[str]:
    """Starts a program and waits for the line that says it is ready."""
    process = subprocess.Popen(arguments, text=True, **pipes)
    processes.append(process)
    while ready and ready not in (line := (process.stderr or process.stdout).readline()):
        if not line:
            raise SystemExit(f"{arguments} ended")
    return process


def hosted(holder: subprocess.Popen[str], *arguments: str) -> list[str]:
    return ["nsenter", "-t", str(holder.pid), "-n", *arguments]


def run(*arguments: str) -> str:
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def namespace() -> subprocess.Popen[str]:
    return start(["unshare", "-n", "sh", "-c", "echo up; exec sleep 120"], "up", stdout=subprocess.PIPE)


def host(name: str, network: str) -> subprocess.Popen[str]:
    holder = namespace()
    run("ip", "link", "add", f"r{name}", "type", "veth", "peer", "name", f"v{name}", "netns", str(holder.pid))
    run("ip", "link", "set", f"r{name}", "up")
    run(*hosted(holder, "ip", "link", "set", f"v{name}", "up"))
    run(*hosted(holder, "ip", "address", "add", network, "dev", f"v{name}"))
    return holder


def main() -> None:
    routed = kind != "relay"
    a, b = host("a", "10.0.1.2/24"), host("b", "10.0.2.2/24" if routed else "10.0.1.3/24")
    target = "10.0.2.2" if routed else "10.0.1.3"
    off = ["tso", "off", "gso", "off", "gro", "off", "tx", "off"]
    if routed:
        run("ip", "address", "add", "10.0.1.1/24", "dev", "ra")
        run("ip", "address", "add", "10.0.2.1/24", "dev", "rb")
        run(*hosted(a, "ip", "route", "add", "default", "via", "10.0.1.1"))
        run(*hosted(b, "ip", "route", "add", "default", "via", "10.0.2.1"))
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        run("ethtool", "-K", "rb", "tso", "off", "gso", "off")
        if kind == "merge":
            run(*hosted(a, "ethtool", "-K", "va", *off))
            run("ethtool", "-K", "ra", "gro", "off")
            run(*hosted(b, "ethtool", "-K", "vb", "gro", "on"))
        if plan:
            run("tc", "qdisc", "add", "dev", "rb", "root", "tbf", *plan.split())
    else:
        for holder, name in ((a, "a"), (b, "b")):
            run(*hosted(holder, "ethtool", "-K", f"v{name}", *off))
        for name in "ra", "rb":
            run("ethtool", "-K", name, *off)
        (out / "plan.json").write_text(plan)
        relay = [sys.executable, str(pathlib.Path(__file__).parent / "relay.py"), "ra", "rb"]
        relaying = start([*relay, str(out / "plan.json"), str(out / "relay.jsonl")], "ready", stdout=subprocess.PIPE)
    dumps = []
    for holder, name in ((a, "a"), (b, "b")):
        dump = ["tcpdump", "--immediate-mode", "-U", "-ni", f"v{name}", "-s", snap, "-B", "8192"]
        dump += ["-w", str(out / f"{name}.pcap"), "ip"]
        dumps.append(start(hosted(holder, *dump), "listening", stderr=subprocess.PIPE))
    server = start(hosted(b, "iperf3", "-s", "-1", "--json", "--logfile", str(out / "server.json")))
    while ":5201" not in run(*hosted(b, "ss", "-ltn")):
        pass
    shell = [word.replace("TARGET", target) for word in command]
    client = subprocess.run(hosted(a, *shell), capture_output=True, text=True)
    (out / "client.json").write_text(client.stdout)
    server.wait()
    if routed:
        (out / "link.json").write_text(run("ip", "-s", "-j", "link", "show", "rb"))
        (out / "qdisc.json").write_text(run("tc", "-s", "-j", "qdisc", "show", "dev", "rb"))
    else:
        relaying.terminate()
        relaying.wait()
    for dump in dumps:
        dump.send_signal(2)
        dump.wait()


try:
    main()
finally:
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
