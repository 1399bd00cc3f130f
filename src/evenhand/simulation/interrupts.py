"""Ctrl-C during a simulation: heard between two batches, and nothing recorded is lost."""

import signal
import threading

from evenhand.simulation.record import Run


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation; ``run`` holds all that was recorded until then.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> def stop(queries):  # stands for a hand on the keyboard
    ...     raise KeyboardInterrupt
    >>> try:
    ...     evenhand.simulate(
    ...         URS(m=2, k=1, seed=1), additive([0.5, 0.5]), 10**6, seed=1,
    ...         checkpoints=[10], progress=stop,
    ...     )
    ... except evenhand.Interrupted as stopped:
    ...     print(stopped.run.checkpoints)
    [10]
    """

    def __init__(self, run: Run) -> None:
        super().__init__(f"interrupted after {run.queries} queries; what was recorded is in .run")
        self.run = run

    def __reduce__(self) -> tuple[type["Interrupted"], tuple[Run]]:
        return Interrupted, (self.run,)


class CtrlC:
    """Notes Ctrl-C, so that the loop can stop between two batches.

    Raised inside compiled code, a KeyboardInterrupt can crash the process. A second Ctrl-C is
    raised at once, in case the game takes long to answer. Only the main thread hears signals.
    """

    def __enter__(self) -> "CtrlC":
        self.pressed = False
        self.before = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        self.listens = main and self.before not in (signal.SIG_IGN, None)
        if self.listens:
            signal.signal(signal.SIGINT, self._hear)
        return self

    def _hear(self, number: int, frame: object) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *error: object) -> None:
        if self.listens:
            signal.signal(signal.SIGINT, self.before)
