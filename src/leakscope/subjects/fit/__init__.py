"""Fitted models: the laws of every record's score over the other records, from one fit."""

from leakscope.subjects.fit.subject import Fit as Fit
