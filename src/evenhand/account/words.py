"""What an account says about one arm, in words for people who do not read formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evenhand.account.why import Why

MOSTLY, LARGELY = 0.5, 0.8  # parts of an estimate that rest on an arm's own rewards
SAME = 0.01  # shares that differ by less than this part are called the same
FEW_SIZES = 8  # sizes of sets that are listed one by one


class Paragraph(NamedTuple):
    """What is said about one topic."""

    about: str
    words: str


def paragraphs(why: Why) -> list[Paragraph]:
    """All that there is to say, topic by topic."""
    said = {
        "Share": _share(why),
        "Why": _reason(why),
        "How sure": _sureness(why),
        "Seen in": _sets(why),
        "Terms": _terms(why),
        "Looked at": _looks(why),
        "Changes": _changes(why),
        "Not known yet": _unknown(why),
    }
    return [Paragraph(about, " ".join(words)) for about, words in said.items() if words]


def percent(x: float) -> str:
    """A part of something, to three digits."""
    return f"{100.0 * x:.3g} %" if x < 0.9995 else "100 %"


def count(n: int, what: str) -> str:
    """A number of things."""
    many = what[:-1] + "ies" if what.endswith("ry") else what + "s"
    return f"{n:,} {what if n == 1 else many}"


def _share(why: Why) -> list[str]:
    if why.paused:
        barred = why.cap == 0.0
        return [
            "It gets nothing: the terms give it a cap of 0."
            if barred
            else "It gets nothing now: it is paused. What is known of it is kept."
        ]
    return [
        f"It is due {percent(why.share)} of all places: it is in {percent(why.due)} of the full "
        f"sets of {why.k}.",
        f"If all {round(1 / why.even)} arms had the same, each would have {percent(why.even)}.",
    ]


def _reason(why: Why) -> list[str]:
    if why.shadow:
        return [
            "All arms are shown alike for now, whatever they bring (shadow mode).",
            *_called_for(why, "would be"),
        ]
    if why.learner == "urs":
        return ["All arms have the same chance here: no merits are estimated."]
    if why.merit is None:
        return [
            "This learner estimates no merit for it."
            if why.told is None
            else "Nothing is known of it yet, so it is treated like the average arm."
        ]
    full = why.learner == "full-sets"
    word = "full-set value" if full else "merit"
    what = (
        "the difference an arm makes to a full set when it takes another's place"
        if full
        else f"what an arm adds, on average, to sets of up to {why.k}"
    )
    said = [f"Shares follow the {word}: {what}.", f"Its {word} is {why.merit:.3g}"]
    if why.paused:
        said[-1] += ", as it was when it was last shown."
        return said
    if why.average is not None and why.average > 0.0:
        said[-1] += f", {why.merit / why.average:.2g} times that of the average arm"
    said[-1] += f", number {why.rank} of {why.of}."
    if why.merit < 0.0:
        said.append("Sets have brought less with it than without it; that counts as 0.")
    return said + _called_for(why, "would be")


def _called_for(why: Why, would: str) -> list[str]:
    if why.by_merit is None or why.paused:
        return []
    alone = f"In proportion to the estimates alone it {would} due {percent(why.by_merit / why.k)}"
    if abs(why.by_merit - why.due) <= SAME * why.due:
        return [f"{alone}."]
    other = "terms and exploring make" if why.floor is not None else "exploring makes"
    return [f"{alone}; {other} up the difference."]


def _sureness(why: Why) -> list[str]:
    if why.merit is None:
        return []
    if why.stderr is None:
        return ["This learner does not say how sure that is."]
    part = 2.0 * why.stderr / why.merit if why.merit > 0.0 else 1.0
    of_it = f", {percent(part)} of it" if part < 1.0 else ", no less than itself"
    said = [
        f"That is known to within {2 * why.stderr:.2g} either way (two standard errors{of_it})."
    ]
    if why.interval is not None:
        said.append(_interval(why, *why.interval))
    return said


def _interval(why: Why, low: float, high: float) -> str:
    if high - low > 1.9 * (why.rewards[1] - why.rewards[0]):
        return "What can be guaranteed without any assumption says nothing yet."
    between = f"between {low:.3g} and {high:.3g} with 95 % confidence, at any time."
    if why.learner == "even-hand":  # whose errors rest on a model, and whose intervals do not
        return f"What can be guaranteed without any assumption is wider: {between}"
    return f"It lies {between}"


def _sets(why: Why) -> list[str]:
    if why.paused:
        return []
    said = []
    if why.alone is not None and why.company is not None:
        said.append(
            f"{count(why.alone, 'reward')} of it alone and {why.company:,} of sets with others "
            "are behind this."
        )
    elif why.company is not None:
        sets = "full sets with it" if why.learner == "full-sets" else "sets with it"
        said.append(f"{count(why.company, 'reward')} of {sets} are behind this.")
    if why.sizes is not None and len(why.sizes) > 1:
        said.append(f"Of all queries {_sizes(why.sizes)}.")
    if why.mean_reward_with_it is not None and why.mean_reward is not None:
        said.append(
            f"Sets with it brought {why.mean_reward_with_it:.3g} on average, all sets "
            f"{why.mean_reward:.3g}; the others in a set have a part in that."
        )
    return said


def _sizes(shares: tuple[float, ...]) -> str:
    """How many queries show how many arms, sizes with equal shares together."""
    runs: list[list[int]] = []
    for r, share in enumerate(shares, 1):
        if share <= 0.0:
            continue
        if runs and runs[-1][1] == r - 1 and abs(share - shares[r - 2]) < 1e-9:
            runs[-1][1] = r
        else:
            runs.append([r, r])
    said = []
    for first, last in runs[:FEW_SIZES]:
        each, arms = percent(shares[first - 1]), count(last, "arm")
        said.append(f"{each} show {arms}" if first == last else f"{each} each {first} to {arms}")
    return ", ".join(said) + (", the others more" if len(runs) > FEW_SIZES else "")


def _terms(why: Why) -> list[str]:
    if why.floor is None or why.cap is None or why.shadow or why.paused:
        return []
    said, k = [], why.k
    if why.floor > 0.0:
        felt = (
            "and that is what it gets" if why.due <= why.floor * (1 + SAME) else "less than it gets"
        )
        said.append(f"Its floor is {percent(why.floor / k)} of all places, {felt}.")
    if why.cap < 1.0:
        felt = (
            "and that is what it gets" if why.due >= why.cap * (1 - SAME) else "more than it gets"
        )
        said.append(f"Its cap is {percent(why.cap / k)} of all places, {felt}.")
    if why.group is not None and why.group_due is not None:
        name, low, high = why.group
        limits = [f"at least {percent(low / k)}"] if low > 0.0 else []
        limits += [f"at most {percent(high / k)}"] if high < k else []
        held = f", which is to have {' and '.join(limits)} together," if limits else ","
        said.append(f"It is in the group {name}{held} and is due {percent(why.group_due / k)}.")
    if why.power != 1.0:
        how = "more" if why.power < 1.0 else "less"
        said.append(
            f"Shares follow merit to the power {why.power:g}: they are {how} alike than merits."
        )
    if why.without_terms is not None:
        moved = why.due - why.without_terms
        said.append(
            "Without the terms it would be due about the same."
            if abs(moved) <= SAME * why.due
            else f"Without the terms it would be due {percent(why.without_terms / k)}, so they "
            f"{'give it' if moved > 0 else 'take'} {percent(abs(moved) / k)} of all places"
            f"{'' if moved > 0 else ' for others'}."
        )
    return said


def _looks(why: Why) -> list[str]:
    if not why.asked:
        return [f"It has not been shown yet, after {count(why.queries, 'query')}."]
    said = [f"It was in {why.asked:,} of {count(why.queries, 'query')}"]
    if why.last is None:
        said[0] += "; when last is not known."
    elif why.last == why.queries:
        said[0] += ", the last one among them."
    else:
        ago = count(why.queries - why.last, "query")
        said[0] += f", last in query {why.last:,}, {ago} ago."
    if why.given is not None:
        while_there = " while it was there" if why.joined else ""
        said.append(f"So far it was given {percent(why.given / why.k)} of all places{while_there}.")
    return said


def _changes(why: Why) -> list[str]:
    said = [f"It joined after {count(why.joined, 'query')}."] if why.joined else []
    for queries, _, alone in why.changes or ():
        what = "brings" if alone else "brings together with others"
        said.append(
            f"After {count(queries, 'query')} it was noticed that what it {what} had changed; what "
            "was known of that before was forgotten."
        )
    if why.agreed:
        said.append(f"Terms were last changed after {count(why.agreed[-1], 'query')}.")
    if why.changes == () and why.asked:
        said.append("No change of what it brings was noticed.")
    return said


def _unknown(why: Why) -> list[str]:
    if why.learner == "urs":
        return ["What it brings: this learner does not estimate that."]
    said = []
    if why.merit is None:
        said.append(
            "What it brings."
            if why.told is None
            else "What it brings: no reward of a set with it has been told."
        )
    elif why.settled is not None and why.settled < MOSTLY:
        said.append(
            f"Shown {count(why.asked, 'time')} so far: its share is still mostly the starting "
            "share, that of an average arm."
        )
    elif why.settled is not None and why.settled < LARGELY:
        said.append(
            f"Some {percent(round(1.0 - why.settled, 2))} of what is assumed of it is still what "
            "arms have in common."
        )
    if why.near:
        said.append(
            f"Whether it is ahead of {count(why.near, 'other arm')}: they are within two standard "
            "errors of it."
        )
    return said
