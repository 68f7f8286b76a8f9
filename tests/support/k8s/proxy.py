"""proxy.py LISTEN-AT API-SERVER: pods are told one address of the API server, which those with a network of their own reach
as well as those with the host's: the bridge's. The API server itself listens on loopback."""
import asyncio
import sys


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def serve(reader, writer):
    try:
        there = await asyncio.open_connection(sys.argv[2], 6443)
    except OSError:
        writer.close()
        return
    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer), return_exceptions=True)


async def main():
    await (await asyncio.start_server(serve, sys.argv[1], 443)).serve_forever()


asyncio.run(main())
