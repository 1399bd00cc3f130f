"""A service asked and told by several processes, which are killed at random.

`evenhand serve` runs in a folder of its own; six processes ask it what to show and tell the
clicks, and are killed one after the other, in the middle of their work. At the end every
click that the service acknowledged is counted once, and a replay of its log gives the same bits.

Run it with: python examples/service_clients.py
"""

import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

PATH = str(Path(__file__).resolve().parents[1] / "client" / "src")
ARMS, CLIENTS = ["ada", "bob", "cy", "dee", "eve", "flo", "gil", "hal"], 6
CLIENT = """
import random, sys
from evenhand_client import Client
with Client(sys.argv[1], sys.argv[2]) as service, open(sys.argv[3], "a") as file:
    home = service.experiment("home")
    while True:
        rows = [row for row in home.ask_many(3) if row.learns]
        clicks = [(row.id, float(random.random() < 0.1 * len(row.arms))) for row in rows]
        for (id, click), word in zip(clicks, home.tell_many(clicks) if clicks else []):
            if word in ("accepted", "duplicate"):
                print(id, click, file=file, flush=True)
"""


def main() -> None:
    """Start a service and its clients, kill some, and compare."""
    evenhand = [sys.executable, "-m", "evenhand"]
    with tempfile.TemporaryDirectory() as folder:
        port, noted = str(random.randrange(20_000, 30_000)), Path(folder, "acknowledged.txt")
        serve = [*evenhand, "serve", "--port", port]
        service = subprocess.Popen(serve, cwd=folder, stderr=subprocess.DEVNULL)
        try:
            run_clients(service, f"http://127.0.0.1:{port}", folder, noted)
        finally:
            service.terminate()
            service.wait()
        lines = [line for line in noted.read_text().splitlines() if line.count(" ") == 1]
        print(f"{CLIENTS} clients killed, {len(lines)} clicks acknowledged and noted", flush=True)
        subprocess.run([*evenhand, "service", "check"], cwd=folder, check=True)


def run_clients(service: subprocess.Popen[bytes], url: str, folder: str, noted: Path) -> None:
    """Run clients, and kill one after the other."""
    while not ready(url):
        if service.poll() is not None:
            sys.exit("the service did not start: it needs the extra serve")
        time.sleep(0.1)
    key = Path(folder, "evenhand.key").read_text().strip()
    make = "from evenhand_client import Client; import sys; url, key, *arms = sys.argv[1:]; "
    make += "Client(url, key).create('home', arms, k=3, seed=1)"
    environment = os.environ | {"PYTHONPATH": PATH}
    subprocess.run([sys.executable, "-c", make, url, key, *ARMS], env=environment, check=True)
    command = [sys.executable, "-c", CLIENT, url, key, str(noted)]
    clients = [subprocess.Popen(command, env=environment) for _ in range(CLIENTS)]
    for one in clients:
        time.sleep(random.uniform(0.3, 0.8))
        one.kill()
        one.wait()


def ready(url: str) -> bool:
    """Whether the service is ready."""
    try:
        return bool(urllib.request.urlopen(f"{url}/readyz", timeout=5).status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    main()
