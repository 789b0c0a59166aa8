"""Values and the loop: kernels, Gram matrices, bases, expansions, ``peel``. No fitting policy."""
