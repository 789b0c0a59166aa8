"""
A classifier in 9 kB of C
=========================

A tumour classifier for thirty measurements, as one C file that needs nothing but ``math.h``: small enough for a
microcontroller with some kilobytes of memory.
"""

# %%
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from fewkern import KernelClassifier, to_c, to_c_test

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = KernelClassifier().fit(X_train, y_train)
right = model.score(X_test, y_test)
print(f"{model.n_vectors_} vectors, {right:.1%} of the test samples are right")

# %%
# One call writes the file. Its head says what is in it.
folder = Path(tempfile.mkdtemp())
code = to_c(model, folder / "tumour.c", name="tumour", dtype="float")
print(re.search(r"/\*.*?\*/", code, re.DOTALL)[0])

# %%
# A main program around it reads samples and prints classes. Compiled with ``-Os``:
MAIN = """
#include <stdio.h>
#include "tumour.c"
int main(void)
{
    float x[tumour_N_FEATURES];
    for (;;) {
        for (int j = 0; j < tumour_N_FEATURES; j++) {
            if (scanf("%f", &x[j]) != 1) return 0;
        }
        printf("%s\\n", tumour_class_name(tumour_predict(x)));
    }
}
"""
(folder / "main.c").write_text(MAIN)
if shutil.which("cc"):
    subprocess.run(["cc", "-Os", "-c", "tumour.c"], cwd=folder, check=True)
    print(
        subprocess.run(
            ["size", "tumour.o"], cwd=folder, check=True, capture_output=True, text=True
        ).stdout
    )
    subprocess.run(
        ["cc", "-Os", "main.c", "-lm", "-o", "tumour"], cwd=folder, check=True
    )
    text = "\n".join(
        " ".join(map(repr, row))
        for row in X_test.astype(np.float32).astype(float).tolist()
    )
    said = subprocess.run(
        [folder / "tumour"], input=text, check=True, capture_output=True, text=True
    ).stdout.split()
    same = np.mean(np.array(said, int) == model.predict(X_test))
    print(f"{same:.1%} of the C program's answers are Python's")
else:
    print("There is no C compiler here.")

# %%
# A processor without floating point computes in whole numbers of 16 bits. The head of such a file says what rounding
# does, and a test of 20 rows says on the device whether it computes what Python expects.
whole = to_c(model, folder / "whole.c", name="whole", dtype="int16")
print(re.search(r"Rounding.*?(?=\n \*\n)", whole, re.DOTALL)[0].replace("\n * ", "\n"))
to_c_test(model, X_test, folder / "whole_test.c", name="whole", dtype="int16")
if shutil.which("cc"):
    files = ["-Dwhole_TEST_MAIN", "whole.c", "whole_test.c", "-o", "whole"]
    subprocess.run(["cc", "-Os", *files], cwd=folder, check=True)
    wrong = subprocess.run([folder / "whole"], check=False).returncode
    print(f"rows of the test that differ: {wrong}")

# %%
# What the bytes are. Most of them are the tables by which every column is prepared. A tuned ``SVC`` keeps a hundred
# support vectors of these samples, 120 bytes each.
total = int(re.search(r"Constants: (\d+) bytes", code)[1])
values = {
    "vectors": 4 * model.vectors_.size,
    "widths, coefficients": 8 * model.n_vectors_,
}
values["columns"] = total - sum(values.values())
fig, ax = plt.subplots(figsize=(6.4, 1.9), layout="constrained")
left = 0
for (name, count), color in zip(values.items(), ("#d95f02", "#1f4e79", "#b8c4ce")):
    ax.barh(0, count, left=left, color=color, label=f"{name}: {count} bytes")
    left += count
ax.set(yticks=[], xlabel="bytes of constants", xlim=(0, left))
ax.spines[["top", "right", "left"]].set_visible(False)
fig.legend(frameon=False, loc="outside upper center", ncols=3, fontsize=9)
plt.show()
