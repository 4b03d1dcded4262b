"""A small FastCGI client: says exactly what a web server would, and what one never would."""
import socket
import struct


def pair(name, value):
    name, value = name.encode(), value.encode()

    def size(n):
        return struct.pack("!B", n) if n < 128 else struct.pack("!I", n | 0x80000000)
    return size(len(name)) + size(len(value)) + name + value


def record(kind, data=b""):
    return struct.pack("!BBHHBB", 1, kind, 1, len(data), 0, 0) + data


def request(path, method="GET", uri="/", body=b"", params=(), end=True):
    """The bytes that came back on standard output; b"" when the connection was closed without an answer.
    params: further (name, value) pairs, repeats allowed. end False: the body's end is never said."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(str(path))
        pairs = [("REQUEST_METHOD", method), ("REQUEST_URI", uri), ("GATEWAY_INTERFACE", "CGI/1.1"), *params]
        out = record(1, struct.pack("!HB5x", 1, 0)) + record(4, b"".join(pair(*p) for p in pairs)) + record(4)
        for at in range(0, len(body), 60000):
            out += record(5, body[at:at + 60000])
        s.sendall(out + (record(5) if end else b""))
        if not end:
            s.shutdown(socket.SHUT_WR)
        return stdout(s)


def stdout(s):
    got, data = b"", b""
    while True:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            more = b""
        if not more:
            return got
        data += more
        while len(data) >= 8:
            kind, size, padding = data[1], *struct.unpack("!HB", data[4:7])
            if len(data) < 8 + size + padding:
                break
            if kind == 6:
                got += data[8:8 + size]
            data = data[8 + size + padding:]


def answer(raw):
    """Status, headers, body of CGI text."""
    head, _, body = raw.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    return int(headers["Status"].split()[0]), headers, body
