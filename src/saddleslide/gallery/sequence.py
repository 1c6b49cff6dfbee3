"""Zero-sum games with moves in turn and hidden cards, in sequence form: both players' strategies are treeplexes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
import scipy

import saddleslide as ss
from saddleslide.domains.treeplex import Treeplex
from saddleslide.errors import InputError
from saddleslide.functions.entrywise import Zero
from saddleslide.gallery.solution import Fact, ResultArray, Strategies
from saddleslide.operators.base import Operator
from saddleslide.operators.explicit import as_operator
from saddleslide.plots import STYLES
from saddleslide.problem import SaddleProblem

# What a player has done on the way to an end: pairs of an information set and an action, in the order of play.
Moves: TypeAlias = Sequence[tuple[Hashable, Hashable]]


class End(NamedTuple):
    """An end of a game: what each player did on the way, what the second pays to the first, and the chance of it."""

    first: Moves
    second: Moves
    payoff: float
    chance: float = 1.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class SequenceSolution(Strategies):
    """Strategies and value of a game in sequence form.

    Examples
    --------
    >>> import saddleslide as ss
    >>> game = ss.gallery.kuhn_poker()
    >>> solution = game.read(ss.solve(game, tol=1e-6))
    >>> round(solution.value, 4), round(solution.behaviour("second")["K, after bet"]["call"], 3)
    (-0.0556, 1.0)
    """

    payoff: Operator
    # For each player the name of every information set and of its actions, in the order of the sequences.
    names: tuple[dict[Hashable, list[Hashable]], dict[Hashable, list[Hashable]]]
    result: ss.Result

    first = ResultArray("y", "Realisation weights of the sequences of the first player, who receives the payoff.")
    second = ResultArray("x", "Realisation weights of the sequences of the second player, who pays.")

    def behaviour(self, player: str) -> dict[Hashable, dict[Hashable, float]]:
        """Probabilities of the actions in every information set of "first" or "second"; even where none leads there."""
        if player not in ("first", "second"):
            raise InputError(f"behaviour: player is {player!r}; expected 'first' or 'second'.")
        weights, found, start = getattr(self, player), {}, 0
        for name, actions in self.names[player == "second"].items():
            here = weights[start : start + len(actions)]
            total = float(here.sum())
            shares = here / total if total > 0.0 else np.full(len(actions), 1.0 / len(actions))
            found[name] = dict(zip(actions, shares.tolist(), strict=True))
            start += len(actions)
        return found

    def facts(self) -> dict[str, Fact]:
        return super().facts() | {"information sets": ", ".join(str(len(names)) for names in self.names)}

    def draw(self, figure: Any) -> None:
        for ax, player, style in zip(figure.subplots(1, 2), ("first", "second"), STYLES[:2], strict=True):
            lines = [(f"{place}: {action}", share) for place, shares in self.behaviour(player).items()
                     for action, share in shares.items()]  # fmt: skip
            ax.barh(np.arange(len(lines)), [share for _, share in lines], color=style[0])
            ax.set_yticks(np.arange(len(lines)), [label for label, _ in lines], fontsize=5)
            ax.invert_yaxis()
            ax.set(xlabel="probability", title=f"{player} player")
        figure.suptitle(self.title())


def sequence_game(ends: Iterable[Any]) -> SaddleProblem[SequenceSolution]:
    """The zero-sum game with these ends: moves in turn, chance, and players who do not see everything.

    Parameters
    ----------
    ends : iterable of (first, second, payoff, chance)
        One for every way in which the game can end. `first` and `second` say what the players did on the way, as pairs
        (information set, action) in the order of play; an information set is a name for all that the player knows when
        he moves, so positions that he can not tell apart have the same name. `payoff` is what the second player pays to
        the first, `chance` the probability of all moves of chance on the way (1 when missing).

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is a SequenceSolution.

    Examples
    --------
    >>> import saddleslide as ss
    >>> pennies = [([("coin", a)], [("guess", b)], 1.0 if a == b else -1.0) for a in "HT" for b in "HT"]
    >>> game = sequence_game(pennies)
    >>> round(game.read(ss.solve(game, tol=1e-9)).behaviour("first")["coin"]["H"], 6)
    0.5
    """
    told = [_end(k, end) for k, end in enumerate(ends)]
    if not told:
        raise InputError("sequence_game: there are no ends; expected one (first, second, payoff, chance) or more.")
    Y, row_names, rows = _sequences([end.first for end in told], "first")
    X, column_names, columns = _sequences([end.second for end in told], "second")
    entries = [end.payoff * end.chance for end in told]
    B = as_operator(scipy.sparse.coo_array((entries, (rows, columns)), shape=(Y.size, X.size)).tocsr())
    reader = partial(SequenceSolution, B, (row_names, column_names))
    return SaddleProblem(f=Zero(), g=Zero(), B=B, X=X, Y=Y, reader=reader)


def _end(k: int, end: Any) -> End:
    """An end of the game, checked."""
    try:
        made = End(*end)
        first, second = (tuple((place, action) for place, action in moves) for moves in (made.first, made.second))
        payoff, chance = float(made.payoff), float(made.chance)
        hash((first, second))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"sequence_game: ends[{k}] can not be read: {error}. Expected (first, second, payoff, chance), moves as "
            "pairs (information set, action)."
        ) from error
    if not (np.isfinite(payoff) and 0.0 <= chance <= 1.0):
        raise InputError(
            f"sequence_game: ends[{k}] has payoff {payoff:g} and chance {chance:g}; expected a finite payoff and a "
            "probability."
        )
    return End(first, second, payoff, chance)


def _sequences(ways: list[Moves], player: str) -> tuple[Treeplex, dict[Hashable, list[Hashable]], list[int]]:
    """The treeplex of a player, the names of its sets and actions, and for every end the sequence that leads there."""
    actions: dict[Hashable, list[Hashable]] = {}
    before: dict[Hashable, tuple[Hashable, Hashable] | None] = {}
    for moves in ways:
        last: tuple[Hashable, Hashable] | None = None
        for place, action in moves:
            if before.setdefault(place, last) != last:
                raise InputError(
                    f"sequence_game: the {player} player comes to {place!r} after {before[place]!r} and "
                    f"after {last!r}; expected one own last move before each information set (perfect recall)."
                )
            if action not in actions.setdefault(place, []):
                actions[place].append(action)
            last = (place, action)
    # Ends without a move of the player's need a sequence of weight 1: an information set with one action.
    waiting: dict[Hashable, list[Hashable]] = {} if all(ways) else {"start": ["none"]}
    names = waiting | actions
    if waiting and "start" in actions:
        raise InputError("sequence_game: an information set is called 'start'; expected another name for it.")
    index = {(place, action): k for k, (place, action) in enumerate((p, a) for p, each in names.items() for a in each)}
    parents = [-1 if (last := before.get(place)) is None else index[last] for place in names]
    treeplex = Treeplex(parents, [len(each) for each in names.values()])
    return treeplex, names, [index[moves[-1]] if moves else 0 for moves in ways]


def kuhn_poker() -> SaddleProblem[SequenceSolution]:
    """Kuhn poker: three cards, one each, one bet. The value for the first player is -1/18.

    Each player puts one coin in the pot and sees one card of J, Q, K. The first checks or bets a coin; the second
    answers by check or bet, or by fold or call; the first may answer a bet after a check. The higher card wins the pot.

    Examples
    --------
    >>> import saddleslide as ss
    >>> game = kuhn_poker()
    >>> game.X, game.Y
    (Treeplex(6 information sets, 12 sequences), Treeplex(6 information sets, 12 sequences))
    """
    ends = []
    for mine, other in permutations("JQK", 2):
        win = 1.0 if "JQK".index(mine) > "JQK".index(other) else -1.0
        check, bet = (mine, "check"), (mine, "bet")
        after_check, after_bet = f"{other}, after check", f"{other}, after bet"
        again = f"{mine}, after check and bet"
        ends += [
            End([check], [(after_check, "check")], win, 1 / 6),
            End([check, (again, "fold")], [(after_check, "bet")], -1.0, 1 / 6),
            End([check, (again, "call")], [(after_check, "bet")], 2.0 * win, 1 / 6),
            End([bet], [(after_bet, "fold")], 1.0, 1 / 6),
            End([bet], [(after_bet, "call")], 2.0 * win, 1 / 6),
        ]
    return sequence_game(ends)
