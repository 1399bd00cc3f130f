"""Optuna's ask, suggest and tell from several threads: ``python optuna_trials.py URL CLIENTS S``."""

import sys
import threading
import time
import warnings
from typing import Any


def storage(url: str) -> Any:
    import optuna

    if url.startswith("journal:"):
        backend = optuna.storages.journal.JournalFileBackend(url.removeprefix("journal:"))
        return optuna.storages.JournalStorage(backend)
    return optuna.storages.RDBStorage(url)


def main(url: str, clients: int, seconds: float) -> None:
    """Print trials per second."""
    import optuna

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kept = storage(url)
    study = optuna.create_study(storage=kept, sampler=optuna.samplers.RandomSampler(seed=1))
    done, stop = [0] * clients, time.perf_counter() + seconds

    def run(i: int) -> None:
        own = optuna.load_study(
            study_name=study.study_name, storage=kept, sampler=optuna.samplers.RandomSampler()
        )
        while time.perf_counter() < stop:
            trial = own.ask()
            trial.suggest_int("arm", 0, 19)
            own.tell(trial, 0.5)
            done[i] += 1

    threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(done) / (time.perf_counter() - start))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
