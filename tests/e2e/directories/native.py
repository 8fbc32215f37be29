"""The part of HBase's native RPC that make.py needs: calls of ClientService without cell blocks."""

import socket
import struct

INCREMENT = 1


def varint(number):
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def delimited(message):
    return varint(len(message)) + message


def region(name):
    return field(1, 1) + field(2, name)


def increment(region_name, row, family, qualifier, amount, nonce_group, nonce):
    """A MutateRequest."""
    column = field(1, qualifier) + field(2, struct.pack(">q", amount))
    mutation = field(1, row) + field(2, INCREMENT) + field(3, field(1, family) + field(2, column)) + field(9, nonce)
    return field(1, region(region_name)) + field(2, mutation) + field(4, nonce_group)


def bulk_load(region_name, family, path):
    """A BulkLoadHFileRequest for one file."""
    files = field(1, family) + field(2, f"file:{path}".encode())
    return field(1, region(region_name)) + field(2, files) + field(3, 1)


class Client:
    def __init__(self, host, port):
        self._socket = socket.create_connection((host, port))
        header = field(1, field(1, b"make")) + field(2, b"ClientService")
        self._socket.sendall(b"HBas\x00\x50" + struct.pack(">I", len(header)) + header)

    def call(self, method, parameter):
        """Makes a call; fails if the answer is an exception."""
        header = field(1, 1) + field(3, method.encode()) + field(4, 1)
        frame = delimited(header) + delimited(parameter)
        self._socket.sendall(struct.pack(">I", len(frame)) + frame)
        (length,) = struct.unpack(">I", self._receive(4))
        answer = self._receive(length)
        # The header of a response without an exception is the call id alone.
        assert answer[: 1 + len(field(1, 1))] == delimited(field(1, 1)), answer

    def _receive(self, length):
        received = b""
        while len(received) < length:
            more = self._socket.recv(length - len(received))
            assert more, "the server has closed the connection"
            received += more
        return received
