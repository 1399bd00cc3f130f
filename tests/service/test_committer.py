"""Commits that are shared: what waits, what does not, and what each is answered."""

import asyncio
import time

from evenhand.service import tells
from evenhand.service.committer import Committer
from evenhand.service.tells import Told
from tests.service.conftest import new_file
from tests.service.test_storage import new_experiment, seated


def with_committer(folder, act, delay=0.0):
    """Run a coroutine function of a committer and an experiment; a commit takes that long."""
    source = new_file(folder)
    c = source.connect()
    experiment = new_experiment(c)
    seated(c, experiment).work(least=1000)
    c.close()

    async def run():
        committer = Committer(source, asyncio.get_running_loop())
        commit = committer._commit

        def slow(work):
            time.sleep(delay)
            return commit(work)

        committer._commit = slow
        try:
            return await asyncio.wait_for(act(committer, experiment), 20)
        finally:
            await asyncio.to_thread(committer.stop)

    return asyncio.run(run())


def test_work_that_can_wait_rides_along(tmp_path):
    async def act(committer, experiment):
        later = committer.do_later(lambda c: "done")
        words = await committer.tell([Told(experiment, 0, 0, 0.5)])
        return await later, words, committer.commits

    assert with_committer(tmp_path, act) == ("done", [tells.ACCEPTED], 1)


def test_but_not_for_long(tmp_path):
    async def act(committer, experiment):
        return await committer.do_later(lambda c: "done")

    assert with_committer(tmp_path, act) == "done"


def test_it_ends_with_all_done(tmp_path):
    async def act(committer, experiment):
        waiting = [committer.do_later(lambda c: 1), committer.tell([Told(experiment, 0, 0, 0.5)])]
        await asyncio.to_thread(committer.stop)
        return await asyncio.gather(*waiting)

    assert with_committer(tmp_path, act, delay=0.02) == [1, [tells.ACCEPTED]]


def test_tellers_share_commits(tmp_path):
    """Four in closed loops, who would else be answered by turns, three and one."""

    async def act(committer, experiment):
        async def teller(first):
            for row in range(first, first + 20):
                assert await committer.tell([Told(experiment, 0, row, 0.5)]) == [tells.ACCEPTED]

        await asyncio.gather(*(teller(100 * i) for i in range(4)))
        return committer.commits

    assert with_committer(tmp_path, act, delay=0.02) < 40  # 20 if all go together


def test_what_arrives_together_is_one_commit(tmp_path):
    async def act(committer, experiment):
        def told(row):
            return committer.tell([Told(experiment, 0, row, 0.5)])

        await asyncio.gather(*map(told, range(4)))  # the first may go alone: nobody was expected
        await asyncio.gather(*map(told, range(4, 8)))
        before = committer.commits
        for first in range(8, 88, 4):
            await asyncio.gather(*map(told, range(first, first + 4)))
        together = committer.commits - before
        return together, await told(88), await told(89)  # fewer than expected

    assert with_committer(tmp_path, act) == (20, [tells.ACCEPTED], [tells.ACCEPTED])


def test_one_who_cannot_hear_does_not_keep_it_from_others(tmp_path, caplog):
    async def act(committer, experiment):
        def deaf(words):
            raise RuntimeError("gone")

        committer.tell_then([Told(experiment, 0, 0, 0.5)], deaf)
        committer.tell_then([Told(experiment, 0, 1, 0.5)], deaf)
        return await committer.tell([Told(experiment, 0, 2, 0.5)])

    assert with_committer(tmp_path, act, delay=0.02) == [tells.ACCEPTED]
    assert [record.msg for record in caplog.records] == ["unheard", "unheard"]


def test_every_teller_gets_the_words_of_its_rows(tmp_path):
    async def act(committer, experiment):
        rows = [[Told(experiment, 0, r, 0.5) for r in range(i, 400, 3)] for i in range(3)]
        again = [
            Told(experiment, 0, 0, 0.5),
            Told(experiment, 0, 1, 0.25),
            Told(experiment, 0, 999, 1),
        ]
        twice = [Told(experiment, 0, 998, 1.0), Told(experiment, 0, 998, 0.0)]
        first = await asyncio.gather(*(committer.tell(part) for part in (*rows, twice)))
        second = await asyncio.gather(*(committer.tell(part) for part in (again, *rows)))
        return first, second

    first, second = with_committer(tmp_path, act)
    assert {word for words in first[:3] for word in words} == {tells.ACCEPTED}
    assert first[3] == [tells.ACCEPTED, tells.CONFLICT]
    assert second[0] == [tells.DUPLICATE, tells.CONFLICT, tells.ACCEPTED]
    assert {word for words in second[1:] for word in words} == {tells.DUPLICATE}
