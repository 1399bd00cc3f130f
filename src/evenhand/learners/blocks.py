"""What sets of every size say about the arms in them."""

import numpy as np

from evenhand.combinations import mean_products
from evenhand.typing import Floats, Ints, compiled

W, WZ, W2, W2E2 = 0, 1, 2, 3


@compiled
def absorb(table, curve, line, resid, orders, sizes, weights, rewards, q, x, gamma, vplus, offset, noise):
    k = table.shape[0]
    told = 0
    for i in range(len(orders)):
        r, y = sizes[i, 0], rewards[i, 0]
        if np.isnan(y):
            continue
        told += 1
        e = y
        if r > 1:
            product, lost = 1.0, 0.0
            for j in range(r):
                a = orders[i, j]
                left = max(1.0 - gamma * x[a], 0.02)
                product *= left
                lost += x[a] / left
            b = (1.0 - product) / gamma
            e = y - b
            bend = (lost * product - b) / gamma
            curve[0] += bend * bend
            curve[1] += bend * e
            resid[r - 1, 0] += 1.0
            resid[r - 1, 1] += e
            resid[r - 1, 2] += e * e
            iv = 1.0
            for j in range(r):
                a = orders[i, j]
                rest = product / max(1.0 - gamma * x[a], 0.02)
                sat = 1.0 - rest
                gain = x[a] * rest + e - offset[r - 2]
                line[a, 0] += iv
                line[a, 1] += iv * sat
                line[a, 2] += iv * sat * sat
                line[a, 3] += iv * gain
                line[a, 4] += iv * sat * gain
        for j in range(r):
            a = orders[i, j]
            w = r / k * q[a] * weights[i]
            cell = table[r - 1, a]
            cell[W] += w
            cell[WZ] += w * (e + vplus[r - 1, a])
            cell[W2] += w * w
            cell[W2E2] += w * w * e * e
    return told


@compiled
def singles(table, n0, p):
    """Shrunk singleton means and the variances of the raw ones."""
    cells = table[0]
    m = len(cells)
    total = weight = 0.0
    for a in range(m):
        total += cells[a, WZ]
        weight += cells[a, W]
    if weight == 0.0:
        return np.full(m, 0.5), np.full(m, 0.25), np.full(m, 0.5), 1.0
    n_seen = 0
    xbar = 0.0
    within, dof = 0.0, 0.0
    raw = np.zeros(m)
    for a in range(m):
        n = cells[a, W]
        if n > 0.0:
            raw[a] = cells[a, WZ] / n
            n_seen += 1
            xbar += raw[a]
            within += max(cells[a, W2E2] - n * raw[a] ** 2, 0.0)
            dof += n - 1.0
    xbar = max(xbar / n_seen, 1e-4)
    pooled = within / dof if dof > 0.0 else xbar**2
    pooled = max(pooled, 1e-12)
    between = 0.0
    for a in range(m):
        n = cells[a, W]
        if n > 0.0:
            between += (raw[a] - xbar) ** 2 - pooled / n
    between = max(between / n_seen, 0.05 * xbar**2)
    x, v = np.empty(m), np.empty(m)
    # two passes: variances follow the shrunk means
    for a in range(m):
        n = cells[a, W]
        x[a] = (raw[a] * n / pooled + xbar / between) / (n / pooled + 1.0 / between)
    for _ in range(2):
        top = bottom = 0.0
        for a in range(m):
            n = cells[a, W]
            if n > 1.0:
                top += max(cells[a, W2E2] - n * raw[a] ** 2, 0.0)
                bottom += (n - 1.0) * min(max(x[a] / xbar, 0.05), 5.0) ** p
        scale = top / bottom if bottom > 0.0 else pooled
        scale = max(scale, 1e-12)
        for a in range(m):
            n = cells[a, W]
            prior = scale * min(max(x[a] / xbar, 0.05), 5.0) ** p
            own = max(cells[a, W2E2] - n * raw[a] ** 2, 0.0)
            v[a] = (own + n0 * prior) / (max(n - 1.0, 0.0) + n0)
            x[a] = (raw[a] * n / v[a] + xbar / between) / (n / v[a] + 1.0 / between)
    return np.maximum(x, 1e-6), v, raw, between


@compiled
def structure(x, gamma, k):
    m = len(x)
    left = np.maximum(1.0 - gamma * x, 0.02)
    means = mean_products(left, k)
    vplus = np.zeros((k, m))
    phi, tu = np.empty(m), np.empty(m)
    for a in range(m):
        total = 0.0
        for s in range(k):
            total += means[a, s]
            if s > 0:
                vplus[s, a] = (1.0 - left[a] * means[a, s]) / gamma
        phi[a] = x[a] * total / k
        tu[a] = 1.0 - total / k
    return phi, vplus, tu


@compiled
def unbiased(table, vplus, x, v, safety):
    k, m = table.shape[0], table.shape[1]
    phi, variance = np.zeros(m), np.zeros(m)
    for r in range(1, k + 1):
        factor = m / (m - r) if r < k else 1.0
        mean = 0.0
        z = np.empty(m)
        for a in range(m):
            cell = table[r - 1, a]
            if cell[W] > 0.0:
                z[a] = cell[WZ] / cell[W]
            else:
                z[a] = vplus[r - 1, a] if r > 1 else x[a]
            mean += z[a] / m
        for a in range(m):
            cell = table[r - 1, a]
            phi[a] += (factor * (z[a] - mean) if r < k else z[a]) / k
            if cell[W] == 0.0:
                variance[a] = np.inf
            elif r == 1:
                variance[a] += (factor / k) ** 2 * v[a] / cell[W]
            else:
                h = cell[W2] / cell[W] ** 2
                variance[a] += (factor / k) ** 2 * safety * cell[W2E2] / cell[W] ** 2 * (1.0 + 10.0 * h)
    return phi, variance


@compiled
def blend(model, free, variance, heavy, pow):
    kappa2 = 0.05**2
    mean = model.mean()
    unit = model**pow * mean ** (2.0 - pow)
    for _ in range(10):
        top, bottom = 2.0 * 0.05**2, 2.0
        for a in range(len(model)):
            if variance[a] < np.inf:
                ll = (kappa2 * unit[a] / (kappa2 * unit[a] + variance[a])) ** 2
                top += ll * ((free[a] - model[a]) ** 2 - variance[a]) / unit[a]
                bottom += ll
        kappa2 = min(max(top / bottom, 1e-6), 1.0)
    trust = np.zeros(len(model))
    for a in range(len(model)):
        if variance[a] < np.inf:
            k = kappa2 * unit[a] + max(0.0, (free[a] - model[a]) ** 2 - heavy * variance[a])
            trust[a] = k / (k + variance[a])
    return trust, kappa2


@compiled
def lines(table, line, x, v, raw, between, tu, k1, boost):
    m = len(x)
    xbar = 0.0
    seen = 0
    for a in range(m):
        if table[0, a, W] > 0:
            xbar += raw[a]
            seen += 1
    xbar = max(xbar / max(seen, 1), 1e-4)
    phi, variance = np.empty(m), np.empty(m)
    for a in range(m):
        n = table[0, a, W]
        i0, i1, i2, h0, h1 = line[a, 0] * boost, line[a, 1] * boost, line[a, 2] * boost, line[a, 3] * boost, line[a, 4] * boost
        al = 1.0 / between + n / v[a]
        ik = 1.0 / (k1 * x[a]) ** 2
        # minimise n/v (raw-x)^2 + (x-xbar)^2/between + ik (d-x)^2 + sum iv (g - x + d T)^2
        a11 = al + ik + i0
        a12 = -ik - i1
        a22 = ik + i2
        b1 = n / v[a] * raw[a] + xbar / between + h0
        b2 = -h1
        det = ik * (al + i0 - 2.0 * i1 + i2) + al * i2 + max(i0 * i2 - i1 * i1, 0.0)
        xx = (a22 * b1 - a12 * b2) / det
        dd = (a11 * b2 - a12 * b1) / det
        phi[a] = max(xx - dd * tu[a], 0.05 * max(xx, 1e-6))
        variance[a] = (a22 + 2.0 * a12 * tu[a] + a11 * tu[a] ** 2) / det
    return phi, variance
