"""EvenHand."""

import os
import math
from typing import Any

import numpy as np
from scipy.special import gammaln

from evenhand.batch import Batch, Marginals
from evenhand.designs import ConditionalPoisson
from evenhand.designs.split import Split
from evenhand.learners import blocks
from evenhand.learners.learner import MAX_BATCH, Draft, Learner, Seed
from evenhand.learners.pending import Pending
from evenhand.policy import clip_to_sum
from evenhand.typing import Floats, Ints

OPT = dict(growth=0.01, eta=0.1, floor=1.0, n0=20.0, p=1.0, safety=2.0, heavy=4.0, f1=0.5, early=4, f1e=0.7, fpow=0.0, line=1, k1=0.5, off=1, fexp=1/3, kpow=0.0)


class EvenHand(Learner):
    notes = ("weights",)

    def __init__(self, m: int, k: int, *, seed: Seed, **opt) -> None:
        super().__init__(m, k, None, seed)
        self.opt = {**OPT, **opt}
        self._table = np.zeros((self.k, self.m, 4))
        self._curve = np.zeros(2)
        self.gamma = 1e-4
        self._line = np.zeros((self.m, 5))
        self._resid = np.zeros((self.k, 3))
        self._offset, self._noise = np.zeros(self.k), np.full(self.k, 0.25)
        self._told, self._told_then = 0, 0
        self._x = np.full(self.m, 0.5)
        self._vplus = np.zeros((self.k, self.m))
        self._pending = Pending()
        self._q = np.full(self.m, self.k / self.m)
        r = np.arange(1, self.k + 1)
        self._log_sets = gammaln(self.m) - gammaln(r) - gammaln(self.m - r + 1)

    def parts(self):
        o = self.opt
        x, v, raw, between = blocks.singles(self._table, o["n0"], o["p"])
        model, vplus, tu = blocks.structure(x, self.gamma, self.k)
        if o["line"]:
            model, vm = blocks.lines(self._table, self._line, x, v, raw, between, tu, o["k1"], 1.5 * (self._resid[:, 0].sum() + 1) / (self._resid[:, 2].sum() + 0.25))
        free, variance = blocks.unbiased(self._table, vplus, x, v, o["safety"])
        trust, kappa2 = blocks.blend(model, free, variance, o["heavy"], o["kpow"])
        return x, vplus, model, free, variance, trust, kappa2

    @property
    def merit(self) -> Floats:
        _, _, model, free, _, trust, _ = self.parts()
        return model + trust * (free - model)

    def _policy(self, phi):
        d = min(0.5, self.opt["floor"] / (1.0 + self.queries / self.m) ** self.opt["fexp"])
        low, high = d * self.k / self.m, 1.0 - d * (1.0 - self.k / self.m)
        full = np.ones(self.m)
        return clip_to_sum(np.maximum(phi, 1e-9 * phi.max()), low * full, high * full, self.k)

    @property
    def marginals(self) -> Floats:
        if self._pending.left:
            return self._q.copy()
        return self._policy(self.merit)

    def _refresh(self) -> None:
        m, k, o = self.m, self.k, self.opt
        if self._curve[0] > 0.0:
            x, _, _, _ = blocks.singles(self._table, o["n0"], o["p"])
            xbar = x.mean()
            self.gamma = float(np.clip(self.gamma + self._curve[1] / (self._curve[0] + o.get("g0", 0.0) * xbar**2), 1e-4, 0.95 / xbar))
        self._curve *= 0.0 if False else o.get("forget", 0.9)
        self._x, self._vplus, model, free, var, trust, kappa2 = self.parts()
        if self._told:
            self._line *= self._told_then / self._told
            self._resid *= self._told_then / self._told
            self._told_then = self._told
        n = self._resid[:, 0] + 1e-300
        if o["off"]:
            self._offset = np.where(n > 1, self._resid[:, 1] / n, 0.0)
            self._offset[0] = 0.0
        self._noise = np.where(n > 1, self._resid[:, 2] / n, 0.25) + 1e-9
        self._q = self._policy(model + trust * (free - model))
        self._q.flags.writeable = False
        n = int(min(max(1, m // 10, o["growth"] * self.queries), MAX_BATCH))
        early = self.queries < o["early"] * m
        shares = np.ones(k)
        if k > 1:
            f1 = o["f1e"] if early else o["f1"]
            shares[1:] = np.arange(2, k + 1.0) ** o["fpow"]
            shares[1:] *= (1 - f1) / shares[1:].sum()
            shares[0] = f1
        sizes = self._rng.choice(k, n, p=shares) + 1
        orders, weights = np.zeros((n, k), np.int64), np.ones(n)
        for r in np.unique(sizes):
            rows = np.flatnonzero(sizes == r)
            if r == 1 or r == m:
                design = ConditionalPoisson.fit(self._q * (r / k))
            else:
                design = Split.fit(self._q * (r / k), o["eta"])
            drawn = design.sample(len(rows), self._rng)
            orders[rows, :r] = drawn
            weights[rows] = np.exp(-design._log_prob(drawn) - self._log_sets[r - 1])
        self._pending = Pending(orders=orders, sizes=sizes[:, None], weights=weights)

    def _ask(self, limit: int) -> Draft:
        if not self._pending.left:
            self._refresh()
        rows = self._pending.take(min(limit, MAX_BATCH, self._pending.left))
        return Draft(rows["orders"], rows["sizes"], Marginals(self._q), {"weights": rows["weights"]})

    def _tell(self, batch: Batch, rewards: Floats) -> None:
        self._told += blocks.absorb(self._table, self._curve, self._line, self._resid, batch.orders, batch.sizes, batch.notes["weights"], rewards, batch.exposure.q, self._x, self.gamma, self._vplus, self._offset, self._noise)

    def _config(self): return {"m": self.m, "k": self.k}
    def _state(self): return {}, {}
    def _set_state(self, values, arrays): pass
