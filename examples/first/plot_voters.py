"""
Show me the cases behind a decision
===================================

A model of a few real samples explains itself: a prediction is a vote of rows that you can look up. Here a tumour is
compared with a handful of patients.
"""

# %%
# The vectors of a :class:`~fewkern.ForwardKernelFisher` are samples; ``prefer="sparse"`` keeps as few as possible.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from fewkern import ForwardKernelFisher

data = load_breast_cancer(as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(
    data.data, data.target, stratify=data.target, random_state=0
)
model = ForwardKernelFisher(prefer="sparse").fit(X_train.to_numpy(), y_train)
right = model.score(X_test.to_numpy(), y_test)
print(f"{model.n_vectors_} of {len(X_train)} patients are kept")
print(f"{right:.1%} of new patients are classified right")

# %%
# The patients that are kept, with four of their thirty measurements:
kept = X_train.iloc[model.indices_]
columns = ["mean radius", "mean texture", "mean concavity", "worst area"]
shown = kept[columns].assign(diagnosis=data.target_names[y_train.iloc[model.indices_]])
print(shown.round(2).to_string())

# %%
# For a new patient: similarity to each of them, times its coefficient. Bars to the right speak for "benign".
# A vote need not agree with the diagnosis of its patient: coefficients of neighbours correct each other.
new = X_test.iloc[[3]].to_numpy()
similarity = model.kernel_(new, model.vectors_)[0]
votes = similarity * model.expansion_.coef[:, -1]
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
order = np.argsort(votes)
ax.barh(
    range(len(votes)),
    votes[order],
    color=np.where(votes[order] > 0, "#1f77b4", "#d95f02"),
)
names = shown["diagnosis"].tolist()
labels = [
    f"patient {kept.index[i]}, {names[i]}, similarity {similarity[i]:.2f}"
    for i in order
]
ax.set_yticks(range(len(votes)), labels, fontsize=9)
ax.axvline(0, color="black", lw=0.8)
predicted = data.target_names[model.predict(new)[0]]
ax.set(
    xlabel="vote",
    title=f"predicted: {predicted}, was: {data.target_names[y_test.iloc[3]]}",
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
