"""What is examined: one kind of model a folder, behind one small interface."""

from leakscope.results.kinds import kind_named, register
from leakscope.subjects.laws import PairLaws, PosteriorLaws, UnitLaws, noise_for
from leakscope.subjects.subject import Answers, Asked, Change, Stages, Subject, opened

__all__ = [
    "Answers",
    "Asked",
    "Change",
    "PairLaws",
    "PosteriorLaws",
    "Stages",
    "Subject",
    "UnitLaws",
    "kind_named",
    "noise_for",
    "opened",
    "register",
]
