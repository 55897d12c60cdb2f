/*
 * A training loop in C with marey ranges in it: a network with one hidden layer learns a smooth
 * function of two inputs.
 *
 *     cc -O2 train.c $(pkg-config --cflags --libs marey) -lm -o train
 *     marey run -- ./train
 *     marey report train.marey
 *
 * Without `marey run` the ranges cost a load and a branch each, and nothing is recorded.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <marey/marey.h>

enum { INPUTS = 2, HIDDEN = 128, BATCH = 64, STEPS = 500, EPOCHS = 20 };

struct model {
    float w1[HIDDEN][INPUTS], b1[HIDDEN]; /* inputs to hidden */
    float w2[HIDDEN], b2;                 /* hidden to the one output */
};

struct batch {
    float x[BATCH][INPUTS], y[BATCH];
    float hidden[BATCH][HIDDEN], error[BATCH];
};

static float uniform(void)
{
    return 2.0f * (float)rand() / (float)RAND_MAX - 1.0f;
}

static void init(struct model *m)
{
    for (int h = 0; h < HIDDEN; h++) {
        for (int i = 0; i < INPUTS; i++)
            m->w1[h][i] = 2.0f * uniform();
        m->b1[h] = uniform();
        m->w2[h] = uniform() / sqrtf(HIDDEN);
    }
    m->b2 = 0;
}

static void load(struct batch *b)
{
    MAREY_SCOPE("data"); /* until the function returns */
    for (int n = 0; n < BATCH; n++) {
        for (int i = 0; i < INPUTS; i++)
            b->x[n][i] = uniform();
        b->y[n] = sinf(3.0f * b->x[n][0]) * cosf(2.0f * b->x[n][1]);
    }
}

/* Returns the mean squared error. */
static float forward(const struct model *m, struct batch *b)
{
    MAREY_SCOPE("forward", .category = "model");
    float loss = 0;
    for (int n = 0; n < BATCH; n++) {
        float out = m->b2;
        for (int h = 0; h < HIDDEN; h++) {
            b->hidden[n][h] = tanhf(m->w1[h][0] * b->x[n][0] + m->w1[h][1] * b->x[n][1] + m->b1[h]);
            out += m->w2[h] * b->hidden[n][h];
        }
        b->error[n] = out - b->y[n];
        loss += b->error[n] * b->error[n];
    }
    return loss / BATCH;
}

static void backward(const struct model *m, const struct batch *b, struct model *gradient)
{
    MAREY_SCOPE("backward", .category = "model");
    *gradient = (struct model){0};
    for (int n = 0; n < BATCH; n++) {
        const float d_out = 2.0f * b->error[n] / BATCH;
        gradient->b2 += d_out;
        for (int h = 0; h < HIDDEN; h++) {
            const float d_hidden = d_out * m->w2[h] * (1.0f - b->hidden[n][h] * b->hidden[n][h]);
            gradient->w2[h] += d_out * b->hidden[n][h];
            gradient->b1[h] += d_hidden;
            for (int i = 0; i < INPUTS; i++)
                gradient->w1[h][i] += d_hidden * b->x[n][i];
        }
    }
}

static void update(struct model *m, const struct model *gradient, float rate)
{
    MAREY_SCOPE("update");
    float *weights = (float *)m;
    const float *slopes = (const float *)gradient;
    for (size_t i = 0; i < sizeof *m / sizeof(float); i++)
        weights[i] -= rate * slopes[i];
}

int main(void)
{
    static struct model model, gradient;
    static struct batch batch;
    init(&model);

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        MAREY_SCOPE("epoch");
        float loss = 0;
        for (int step = 0; step < STEPS; step++) {
            MAREY_SCOPE("step");
            load(&batch);
            loss = forward(&model, &batch);
            backward(&model, &batch, &gradient);
            update(&model, &gradient, 0.02f);
            marey_counter(MAREY_ID("loss"), loss); /* a chart above the timeline */
        }
        printf("epoch %2d  loss %.5f\n", epoch, loss);
    }
    return 0;
}
