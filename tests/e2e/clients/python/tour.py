"""A tour of one service with Apache Thrift's own Python: `tour.py host port service transport protocol`.

The service is thrift1 or thrift2; with the transport `http` the port is that of HTTP. Prints `tour done`, or a line
that begins with `not run` for a protocol that this machine's library lacks. The Thrift compiler has put its code into
gen/thrift1 and gen/thrift2.
"""
import importlib
import os
import sys

from thrift.protocol import TBinaryProtocol, TCompactProtocol
from thrift.transport import THttpClient, TSocket, TTransport

TIMEOUT_MS = 60_000

TRANSPORTS = {
    "unbuffered": lambda socket: socket,
    "buffered": TTransport.TBufferedTransport,
    "framed": TTransport.TFramedTransport,
}

# The accelerated protocols may not fall back to the slow ones when their C module is missing.
PROTOCOLS = {
    "binary": TBinaryProtocol.TBinaryProtocol,
    "old-binary": lambda transport: TBinaryProtocol.TBinaryProtocol(transport, strictWrite=False),
    "accelerated-binary": lambda transport: TBinaryProtocol.TBinaryProtocolAccelerated(transport, fallback=False),
    "compact": TCompactProtocol.TCompactProtocol,
    "accelerated-compact": lambda transport: TCompactProtocol.TCompactProtocolAccelerated(transport, fallback=False),
}


def connect(host, port, service, transport):
    if transport == "http":
        client = THttpClient.THttpClient(f"http://{host}:{port}/{service}")
        client.setTimeout(TIMEOUT_MS)
        return client
    socket = TSocket.TSocket(host, port)
    socket.setTimeout(TIMEOUT_MS)
    return TRANSPORTS[transport](socket)


def main():
    host, port, service, transport, protocol = sys.argv[1:]
    # Both interfaces have the namespace `hbase`.
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gen", service))
    module = importlib.import_module(service)
    connection = connect(host, int(port), service, transport)
    try:
        spoken = PROTOCOLS[protocol](connection)
    except ImportError as error:
        print(f"not run: {protocol} in Python: {error}")
        return
    connection.open()
    module.tour(spoken, f"python_{service}_{transport}_{protocol}".encode())
    connection.close()
    print("tour done")


if __name__ == "__main__":
    main()
