"""Serves litellm's proxy on a port that the system chooses, and prints it on the first line.

Ends when standard input does, so that it never outlives the test that started it, however that ends.
"""

import os
import socket
import sys
import threading

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
# Whoever asks from now on waits until the server answers.
listener.listen()
print(listener.getsockname()[1], flush=True)
os.dup2(2, 1)


def end_with_the_test():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=end_with_the_test, daemon=True).start()

import uvicorn  # noqa: E402

config = uvicorn.Config("litellm.proxy.proxy_server:app", log_level="info")
uvicorn.Server(config).run(sockets=[listener])
