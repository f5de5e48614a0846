"""A plain UDP client: sends datagrams of many sizes to an echo service and checks each answer whole.

usage: echo_client.py ADDRESS PORT [SIZE ...]
"""
import socket
import sys


def main():
    address, port = sys.argv[1], int(sys.argv[2])
    sizes = [int(size) for size in sys.argv[3:]]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        for size in sizes:
            payload = bytes((i * 131 + size) & 0xFF for i in range(size))
            client.sendto(payload, (address, port))
            answer, sender = client.recvfrom(65536)
            if answer != payload or sender[1] != port:
                sys.exit(f"{size} bytes: {len(answer)} came back from {sender}, or others than were sent")


main()
