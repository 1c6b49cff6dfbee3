"""Other methods, line by line from their papers, in plain NumPy: nothing of the library is used here."""

from __future__ import annotations

import math

import numpy as np
import scipy.optimize


def shrink(t, level):
    return np.sign(t) * np.maximum(np.abs(t) - level, 0.0)


class Block:
    """q/2 |x|^2 + w |x|_1 + <c, x> on a box (infinite by default): value, proximal step, minimum with a tilt."""

    def __init__(self, q=0.0, w=0.0, c=0.0, low=-math.inf, high=math.inf):
        self.q, self.w, self.c, self.low, self.high = q, w, c, low, high

    def prox(self, point, step):
        """argmin h + |x - point|^2 / (2 step)."""
        free = shrink(point / step - self.c, self.w) / (1.0 / step + self.q)
        return np.clip(free, self.low, self.high)

    def argmin(self, tilt):
        """argmin h + <tilt, x>; q > 0."""
        return np.clip(shrink(-(self.c + tilt), self.w) / self.q, self.low, self.high)

    def value(self, x):
        return float(np.sum(0.5 * self.q * x * x + self.w * np.abs(x) + self.c * x))


def chambolle_pock(f, g, B, x, y, tau, sigma, theta=1.0, gamma=0.0, steps=20):
    """Algorithm 1 of Chambolle and Pock (2011); with gamma > 0 Algorithm 2. Points (x_n, y_n) for n = 1, 2, ..."""
    ahead, points = x, []
    for _ in range(steps):
        y = g.prox(y + sigma * (B @ ahead), sigma)
        new = f.prox(x - tau * (B.T @ y), tau)
        if gamma > 0.0:
            theta = 1.0 / math.sqrt(1.0 + 2.0 * gamma * tau)
        ahead = new + theta * (new - x)
        x = new
        points.append((x, y, sigma))
        if gamma > 0.0:
            tau, sigma = theta * tau, sigma / theta
    return points


def restarted_halpern(f, g, B, x, y, weight, norm, s, t, rounds=20):
    """r2HPDHG of Lu and Yang (2024) with the constants of PDLP: 0.2, 0.8, 0.36, smoothing 1/2. T(z) after each round.

    Rounds of 16 steps, later of a sixteenth of all; columns and rows of B have the scales s and t of steps.
    """
    first, steps, length, r0, last, points = (x, y), 0, 0, math.inf, math.inf, []
    for _ in range(rounds):
        size = max(16, steps // 16)
        for _ in range(size):
            tau, sigma = s / (norm * weight), t * weight / norm
            new_x = f.prox(x - tau * (B.T @ y), tau)
            new_y = g.prox(y + sigma * (B @ (2.0 * new_x - x)), sigma)
            a = (length + 1.0) / (length + 2.0)
            before, here = (x, y), (new_x, new_y)
            x, y = (a * (2.0 * new - old) + (1.0 - a) * z0 for new, old, z0 in zip(here, before, first, strict=True))
            length, steps = length + 1, steps + 1
        points.append(here)
        dx, dy = (old - new for new, old in zip(here, before, strict=True))
        r = math.sqrt(dx @ (dx / tau) + dy @ (dy / sigma) - 2.0 * (B @ dx) @ dy)
        if r <= 0.2 * r0 or last < r <= 0.8 * r0 or length >= 0.36 * steps:
            moved = [
                np.linalg.norm((new - old) / np.sqrt(scale))
                for new, old, scale in zip(here, first, (s, t), strict=True)
            ]
            weight, first, length, r0, last = math.sqrt(weight * moved[1] / moved[0]), here, 0, r, math.inf
            x, y = here
        else:
            r0, last = min(r0, r) if r0 == math.inf else r0, r
    return points


def condat(gradient, g, B, x, y, tau, sigma, project, g_gradient=None, steps=20):
    """Algorithm 3.1 of Condat (2013) with relaxation 1; Vu's gradient of g."""
    points = []
    for _ in range(steps):
        new = project(x - tau * gradient(x) - tau * (B.T @ y))
        slope = 0.0 if g_gradient is None else g_gradient(y)
        y = g.prox(y + sigma * (B @ (2.0 * new - x)) - sigma * slope, sigma)
        x = new
        points.append((x, y))
    return points


def admm(H, c, g, B, x, y, rho, cg_steps, cg_tolerance, steps=20):
    """Boyd et al. (2011), 3.1.1, u = y / rho, z-step by Moreau, x-step by CG from the last x."""
    z, u, points = B @ x, y / rho, []
    for _ in range(steps):
        matrix = H + rho * B.T @ B
        r = rho * B.T @ (z - u) - c - matrix @ x
        p, first = r.copy(), np.linalg.norm(r)
        for k in range(cg_steps):
            if np.linalg.norm(r) <= (cg_tolerance * first if k else 0.0):
                break
            alpha = (r @ r) / (p @ matrix @ p)
            x = x + alpha * p
            new = r - alpha * (matrix @ p)
            p = new + (new @ new) / (r @ r) * p
            r = new
        v = B @ x + u
        z = v - g.prox(rho * v, rho) / rho
        u = u + B @ x - z
        points.append((x, rho * u))
    return points


def accelerated_gossip(W, x, T):
    """AcceleratedGossip of Scaman et al. (2017): P(W) x."""
    values = np.linalg.eigvalsh(W)
    chi = values[-1] / min(v for v in values if v > 1e-9 * values[-1])
    c_2, c_3 = (chi + 1) / (chi - 1), 2 * chi / ((1 + chi) * values[-1])
    a, a_next = 1.0, c_2
    z, z_next = x, c_2 * (x - c_3 * W @ x)
    for _ in range(1, T):
        a, a_next = a_next, 2 * c_2 * a_next - a
        z, z_next = z_next, 2 * c_2 * (z_next - c_3 * W @ z_next) - z
    return x - z_next / a_next


def opapc(gradient, W, solution_of_constraint, x, L, mu, steps=20):
    """Algorithm 2 of Kovalev, Salim and Richtarik (2020) for Wx = W x_b: x and u = B^T y."""
    values = np.linalg.eigvalsh(W)
    chi = values[-1] / min(v for v in values if v > 1e-9 * values[-1])
    T = math.floor(math.sqrt(chi))
    c_1 = (math.sqrt(chi) - 1) / (math.sqrt(chi) + 1)
    tau = min(1.0, (1 + c_1**T) / (2 * math.sqrt(L / mu) * (1 - c_1**T)))
    eta = 1 / (4 * tau * L)
    theta = (1 + c_1 ** (2 * T)) / (eta * (1 + c_1**T) ** 2)
    x_f, u, points = x, np.zeros_like(x), []
    for _ in range(steps):
        x_g = tau * x + (1 - tau) * x_f
        half = (x - eta * (gradient(x_g) - mu * x_g + u)) / (1 + eta * mu)
        u = u + theta * accelerated_gossip(W, half - solution_of_constraint, T)
        new = (x - eta * (gradient(x_g) - mu * x_g + u)) / (1 + eta * mu)
        x_f = x_g + 2 * tau / (2 - tau) * (new - x)
        x = new
        points.append((x, u))
    return points


def apdg(df, dg, A, x, y, mu_x, mu_y, L_x, L_y, steps=20):
    """Algorithm 1 of Kovalev, Gasnikov and Richtarik with beta = 0 and the strongly convex-concave parameters."""
    norm = np.linalg.norm(A, 2)
    s_x, s_y = math.sqrt(mu_x / (2 * L_x)), math.sqrt(mu_y / (2 * L_y))
    t_x, t_y = 1 / (1 / s_x + 0.5), 1 / (1 / s_y + 0.5)
    delta = math.sqrt(mu_y / mu_x)
    e_x = min(1 / (4 * (mu_x + L_x * s_x)), delta / (4 * norm))
    e_y = min(1 / (4 * (mu_y + L_y * s_y)), 1 / (4 * norm * delta))
    theta = 1 - min(e_x * mu_x, e_y * mu_y)
    x_f, y_f, y_old, points = x, y, y, []
    for _ in range(steps):
        y_m = y + theta * (y - y_old)
        x_g, y_g = t_x * x + (1 - t_x) * x_f, t_y * y + (1 - t_y) * y_f
        x_new = x + e_x * mu_x * (x_g - x) - e_x * (df(x_g) + A.T @ y_m)
        y_new = y + e_y * mu_y * (y_g - y) - e_y * (dg(y_g) - A @ x_new)
        x_f, y_f = x_g + s_x * (x_new - x), y_g + s_y * (y_new - y)
        x, y, y_old = x_new, y_new, y
        points.append((x, y))
    return points


def gradient_sliding(df, best_y, B, x, project, L, M, D, N, steps):
    """Algorithm 1 of Lan (2016) with the parameters of Corollary 2; the y-averages go with the x-averages."""
    mean, y_mean, points = x, None, []
    for k in range(1, steps + 1):
        gamma, beta = 2 / (k + 1), 2 * L / k
        T = max(1, math.ceil(M**2 * N * k**2 / (0.75 * D**2 * L**2)))
        slope = df((1 - gamma) * mean + gamma * x)
        u, u_mean, v_mean = x, x, None
        for t in range(1, T + 1):
            p, theta = t / 2, 2 * (t + 1) / (t * (t + 3))
            y = best_y(B @ u)
            # argmin <slope + B^T y, u> + beta/2 |u - x|^2 + beta p/2 |u - u_old|^2 over X
            u = project((x + p * u) / (1 + p) - (slope + B.T @ y) / (beta * (1 + p)))
            u_mean = (1 - theta) * u_mean + theta * u
            v_mean = y if t == 1 else (1 - theta) * v_mean + theta * y
        x = u
        mean = (1 - gamma) * mean + gamma * u_mean
        y_mean = v_mean if k == 1 else (1 - gamma) * y_mean + gamma * v_mean
        points.append((mean, y_mean))
    return points


def universal_primal_dual(f, g, B, y, M, epsilon, steps=20):
    """AccUniPDGrad of Yurtsever, Tran-Dinh and Cevher (2015): weighted mean of minimisers and y."""

    def dual(at):
        x = f.argmin(B.T @ at)
        return -(f.value(x) + at @ (B @ x)), x

    y_hat, t, S, mean, points = y, 1.0, 0.0, 0.0, []
    for _ in range(steps):
        value, x = dual(y_hat)
        while True:
            new = g.prox(y_hat + (B @ x) / M, 1.0 / M)
            step = new - y_hat
            if dual(new)[0] <= value - (B @ x) @ step + 0.5 * M * step @ step + epsilon / (2 * t):
                break
            M = 2 * M
        S += t / M
        mean = mean + (t / M) / S * (x - mean)
        t_new = 0.5 * (1 + math.sqrt(1 + 4 * t * t))
        y_hat = new + (t - 1) / t_new * (new - y)
        y, t = new, t_new
        points.append((mean, y))
    return points


def l_bfgs(value_and_gradient, x, bounds, steps=20, memory=10):
    """One uninterrupted run of SciPy's L-BFGS-B."""
    points = []
    scipy.optimize.minimize(
        value_and_gradient, x, jac=True, method="L-BFGS-B", bounds=bounds, callback=lambda p: points.append(p.copy()),
        options={"maxiter": steps, "ftol": 0.0, "gtol": 0.0, "maxcor": memory},
    )  # fmt: skip
    return points
