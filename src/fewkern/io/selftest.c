/*
 * NAME_test: ROWS rows, and the outputs of the model in Python. Written by fewkern (to_c_test).
 *
 * NAME_test() returns the number of rows whose outputs differ by TOLERANCE or more: 0 if all is well. Compile it
 * with NAME.c; with NAME_TEST_MAIN defined it is a program that returns the same.
 */
#include "NAME.h"

int NAME_test(void);

static const X_TYPE NAME_test_x[N_X] = {
X_ROWS
};

static const Y_TYPE NAME_test_y[N_Y] = {
Y_ROWS
};

int NAME_test(void)
{
    int wrong = 0;
    for (int i = 0; i < ROWS; i++) {
        Y_TYPE out[WIDTH];
        int same = 1;
        CALL
        for (int o = 0; o < WIDTH; o++) {
            const Y_TYPE gap = out[o] - NAME_test_y[WIDTH * i + o];
            same = same && gap < TOLERANCE && -gap < TOLERANCE;
        }
        wrong += !same;
    }
    return wrong;
}

#ifdef NAME_TEST_MAIN
int main(void)
{
    return NAME_test();
}
#endif
