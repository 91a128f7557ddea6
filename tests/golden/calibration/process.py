"""Writes process.json: a Gaussian process by scikit-learn, whose deviation and lengths are given.

    python3 process.py     # scikit-learn 1.9.1

GaussianProcessRegressor with ConstantKernel * Matern(nu=2.5) of two inputs, errors of known variance (alpha), without
optimisation. Its mean is 0: values here are about 0.
"""

import json
from pathlib import Path

import numpy as np
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

random = np.random.default_rng(20261123)
points = random.uniform(size=(12, 2)).round(3)
values = (np.sin(5 * points[:, 0]) * points[:, 1] + random.normal(0, 0.05, 12)).round(4)
errors = random.uniform(0.001, 0.01, 12).round(4)
asked = random.uniform(size=(6, 2)).round(3)
cases = []
for deviation, lengths in ((0.3, (0.5, 0.8)), (1.2, (0.15, 2.0))):
    kernel = ConstantKernel(deviation**2, "fixed") * Matern(lengths, "fixed", nu=2.5)
    process = GaussianProcessRegressor(kernel, alpha=errors, optimizer=None).fit(points, values)
    mean, covariance = process.predict(asked, return_cov=True)
    likelihood = process.log_marginal_likelihood()
    case = {"deviation": deviation, "lengths": lengths, "likelihood": likelihood}
    cases.append({**case, "mean": mean.tolist(), "covariance": covariance.tolist()})
data = {
    "scikit-learn": sklearn.__version__,
    "points": points.tolist(),
    "values": values.tolist(),
    "errors": errors.tolist(),
    "asked": asked.tolist(),
    "cases": cases,
}
with Path("process.json").open("w") as file:
    json.dump(data, file, indent=1)
    file.write("\n")
