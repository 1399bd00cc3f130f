"""Optuna's ask, suggest and tell from several processes: ``optuna_trials.py URL CLIENTS SECONDS``."""

import subprocess
import sys
import time
import uuid
import warnings
from typing import Any


def study(url: str, name: str) -> Any:
    """Open a study, new or not."""
    import optuna

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage: Any = url
    if url.startswith("journal:"):
        from optuna.storages.journal import JournalFileBackend

        storage = optuna.storages.JournalStorage(JournalFileBackend(url.removeprefix("journal:")))
    sampler = optuna.samplers.RandomSampler()
    return optuna.create_study(
        storage=storage, study_name=name, sampler=sampler, load_if_exists=True
    )


def client(url: str, name: str, seconds: float) -> None:
    """Print trials per second of one client, once told to begin."""
    own, done = study(url, name), 0
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        trial = own.ask()
        trial.suggest_int("arm", 0, 19)
        own.tell(trial, 0.5)
        done += 1
    print(done / (time.perf_counter() - start))


def main(url: str, clients: int, seconds: str) -> None:
    """Print trials per second of all clients together."""
    name = uuid.uuid4().hex
    study(url, name)
    command = [sys.executable, "-m", "benchmarks.serving.optuna_trials", url, name, seconds, "one"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    running = [subprocess.Popen(command, text=True, **pipes) for _ in range(clients)]  # type: ignore[call-overload]
    for one in running:
        one.stdout.readline()
    for one in running:
        one.stdin.write("go\n")
        one.stdin.flush()
    print(sum(float(one.communicate()[0].split()[-1]) for one in running))


if __name__ == "__main__":
    if sys.argv[-1] == "one":
        client(sys.argv[1], sys.argv[2], float(sys.argv[3]))
    else:
        main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
