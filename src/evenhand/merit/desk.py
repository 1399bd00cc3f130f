"""Where questions to a slow game are answered: from the cache, else by workers."""

from collections import deque
from collections.abc import Callable

import numpy as np

from evenhand.merit.cache import Cache
from evenhand.merit.questions import Draws, Question, Values
from evenhand.merit.workers import Here, Take, Workers, in_order
from evenhand.typing import Floats, Ints

PRINTS = 2  # fixed sets by which a cache knows its game
FIXED = 0x65766E68  # seed of their draws


class Desk:
    """Answers questions, pays for none twice, and keeps what it paid for.

    Parameters
    ----------
    workers, cache
        Who is asked, and where answers are kept; both are open.
    note
        Told how many numbers were answered and how many of them were paid for.
    m, size
        Arms, and members of the fixed sets: those of other sizes may be out of bounds.
    """

    def __init__(
        self,
        workers: Workers | Here,
        cache: Cache | None,
        note: Callable[[int, int], None],
        m: int,
        size: int,
    ) -> None:
        self._workers, self._cache, self._note = workers, cache, note
        self._m, self._size = m, size
        self._checked: set[type] = set()
        self.stopped = False

    def ask(self, question: Question) -> Floats:
        """Answers (n, s) of all rows; nan for those that Ctrl-C left without one."""
        found = np.full((len(question), question.width), np.nan)
        if self.stopped or not self._is_its_game(type(question)):
            return found
        keys = [] if self._cache is None else question.keys()
        try:
            take = in_order(len(found)) if self._cache is None else self._taker(keys, found)
            for rows, answers in self._workers.ask(question, take):
                self._put(rows, answers, keys, found)
        except BaseException as error:  # of the function too: what came back meanwhile is kept
            for rows, answers in self._workers.finished():
                self._put(rows, answers, keys, found)
            if not isinstance(error, KeyboardInterrupt):
                raise
            self.stopped = True
        return found

    def _put(self, rows: Ints, answers: Floats, keys: list[bytes], found: Floats) -> None:
        """Take in answers that were paid for."""
        if self._cache is not None:
            self._cache.keep([keys[row] for row in rows], answers)
        found[rows] = answers
        self._note(answers.size, answers.size)

    def _taker(self, keys: list[bytes], found: Floats) -> Take:
        """Return a function that gives the next rows to ask, and fills in those that are known."""
        cache, left, others = self._cache, deque[int](), deque[int]()
        assert cache is not None
        known = cache.known(keys)
        for row, key in enumerate(keys):
            if key in known:
                found[row] = known[key]
                self._note(found[row].size, 0)
            else:
                left.append(row)

        def take(most: int) -> Ints | None:
            while left or others:
                again = not left  # what other processes are at may be known by now
                source = others if again else left
                rows = [source.popleft() for _ in range(min(len(source), most))]
                known, away = cache.take([keys[row] for row in rows])
                mine = []
                for row in rows:
                    if keys[row] in known:
                        found[row] = known[keys[row]]
                        self._note(found[row].size, 0)
                    elif keys[row] in away:
                        others.append(row)
                    else:
                        mine.append(row)
                if mine or (again and away):
                    return np.array(mine, np.int64)
            return None

        return take

    def _is_its_game(self, kind: type) -> bool:
        """Let the cache compare what the game says of two fixed sets, once per kind of question.

        Another game is refused; False after Ctrl-C.
        """
        if self._cache is None or self._cache.tolerance == np.inf or kind in self._checked:
            return True
        ends = np.array([np.arange(self._size), np.arange(self._m - self._size, self._m)])
        fixed: Question
        if kind is Draws:
            seeds = FIXED + np.arange(3 * PRINTS).reshape(PRINTS, 3)
            fixed = Draws("pull", ends, np.full((PRINTS, 1), self._size), seeds)
        else:
            sets = np.zeros((PRINTS, self._m), np.bool_)
            sets[np.arange(PRINTS)[:, None], ends] = True
            fixed = Values.of(sets, 1)
        found = np.empty((PRINTS, 1))
        try:
            for rows, answers in self._workers.ask(fixed, in_order(PRINTS)):
                found[rows] = answers
        except KeyboardInterrupt:
            self.stopped = True
            return False
        self._cache.check(fixed.keys(), found)
        self._cache.keep(fixed.keys(), found)
        self._checked.add(kind)
        return True
