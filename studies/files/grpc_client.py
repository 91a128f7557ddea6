"""Call a gRPC method again and again, one call at a time. Writes the time of each call, in seconds.

usage: grpc_client.py SERVER CALLS BYTES FILE
"""

import sys
import time

import grpc


def main() -> None:
    server, calls, size, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    message, times = bytes(size), []
    with grpc.insecure_channel(f"{server}:50051") as channel:
        grpc.channel_ready_future(channel).result(timeout=30)
        call = channel.unary_unary("/lab.Echo/Call")
        for _ in range(calls):
            start = time.perf_counter()
            if call(message, timeout=30) != message:
                sys.exit("the answer is not the message that was sent")
            times.append(time.perf_counter() - start)
    with open(path, "w") as file:
        file.writelines(f"{each:.6f}\n" for each in times)
    print(f"{calls} calls, {calls / sum(times):.3f} calls/s")


main()
