"""An asyncio server with two clients, and a handler that blocks the event loop by computing."""

import asyncio
import sys
import time


def checksum(data):
    total = 0
    for byte in data * 40:
        total = (total * 31 + byte) & 0xFFFF  # planted
    return total


async def handle(reader, writer):
    while True:
        data = await reader.readline()
        if not data:
            break
        writer.write(b"%d\n" % checksum(data))
        await writer.drain()
    writer.close()


async def client(port, end):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    asked = 0
    while time.perf_counter() < end:
        writer.write(b"x" * 100 + b"\n")
        await reader.readline()
        asked += 1
    writer.close()
    return asked


async def main(seconds):
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print("ready", flush=True)
    end = time.perf_counter() + seconds
    asked = await asyncio.gather(client(port, end), client(port, end))
    print("asked", sum(asked), flush=True)


asyncio.run(main(float(sys.argv[1])))
