"""A TCP peer that is not ours: plain Python over the kernel's sockets.

usage: tcp_peer.py serve PORT FOLDER        HTTP/1.1: GET a file of the folder, PUT answers the body's SHA-256
       tcp_peer.py echo PORT                returns what it hears, ends when the other side has ended
       tcp_peer.py talk ADDRESS PORT        an echo service, spoken to in writes of every kind
       tcp_peer.py slow ADDRESS PORT PATH   an HTTP client with a small window, that is often closed; prints the SHA-256
       tcp_peer.py wait ADDRESS PORT        says a line to an echo service at once and again when it gets one on its
                                            standard input; prints what comes of it
       tcp_peer.py digest                   the SHA-256 of standard input
"""
import hashlib
import http.client
import http.server
import os
import random
import socket
import sys
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with open(os.path.join(self.server.folder, self.path.lstrip("/")), "rb") as file:
            self.send_response(200)
            self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
            self.end_headers()
            self.wfile.flush()
            self.connection.sendfile(file)

    def do_PUT(self):
        left = int(self.headers["Content-Length"])
        digest = hashlib.sha256()
        while left > 0:
            piece = self.rfile.read(min(left, 65536))
            if not piece:
                return
            digest.update(piece)
            left -= len(piece)
        answer = digest.hexdigest().encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    request_queue_size = 512


def serve(port, folder):
    server = Server(("::", int(port)), Handler)
    server.folder = folder
    server.serve_forever()


def return_everything(connection):
    with connection:
        while piece := connection.recv(65536):
            connection.sendall(piece)


def echo(port):
    listener = socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
    while True:
        threading.Thread(target=return_everything, args=(listener.accept()[0],), daemon=True).start()


def hear_all(connection, into):
    while piece := connection.recv(random.choice([1, 100, 65536])):
        into.append(piece)


def talk(address, port):
    random.seed(7)
    for no_delay in (False, True):
        for writes in ([1] * 300, [1448] * 50, [random.randint(1, 5000) for _ in range(200)], [200_000]):
            with socket.create_connection((address, int(port)), timeout=20) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, no_delay)
                heard = []
                listener = threading.Thread(target=hear_all, args=(connection, heard))
                listener.start()
                said = [random.randbytes(size) for size in writes]
                for piece in said:
                    connection.sendall(piece)
                connection.shutdown(socket.SHUT_WR)
                listener.join()
                if b"".join(heard) != b"".join(said):
                    sys.exit(f"{len(b''.join(said))} bytes said, {len(b''.join(heard))} heard, or others")
    print("all came back")


def slow(address, port, path):
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect((address, int(port)))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    time.sleep(0.3)  # the window closes
    response = http.client.HTTPResponse(connection)
    response.begin()
    digest = hashlib.sha256()
    pause_at = 0
    heard = 0
    while piece := response.read(3000):
        digest.update(piece)
        heard += len(piece)
        if heard > pause_at:
            time.sleep(0.02)
            pause_at += 20_000
    print(digest.hexdigest())


def wait(address, port):
    with socket.create_connection((address, int(port)), timeout=20) as connection:
        try:
            connection.sendall(b"one\n")
            print("heard", connection.recv(100), flush=True)
            sys.stdin.readline()
            connection.sendall(b"two\n")
            print("heard", connection.recv(100), flush=True)
        except OSError as error:
            print("failed", type(error).__name__, flush=True)


def digest():
    total = hashlib.sha256()
    while piece := sys.stdin.buffer.read(1 << 20):
        total.update(piece)
    print(total.hexdigest())


globals()[sys.argv[1]](*sys.argv[2:])
