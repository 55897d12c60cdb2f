/*
 * A training loop in C++17 with marey ranges. Two threads each fit a line to their half of the data
 * and average their results after every epoch. Some batches are invalid and throw an exception
 * through their ranges.
 *
 *     c++ -std=c++17 -O2 train.cpp $(pkg-config --cflags --libs marey) -pthread -o train
 *     marey run -- ./train
 *     marey report train.marey --threads
 *
 * Without `marey run` the ranges cost a load and a branch each, and nothing is recorded.
 */
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <marey/marey.h>

namespace {

constexpr int epochs = 20, steps = 200, batch_size = 256, broken_every = 100;

struct model {
    double slope = 0, offset = 0;
};

struct sample {
    double x, y;
};

class worker {
  public:
    explicit worker(unsigned seed) : random_(seed)
    {
    }

    /* One epoch, starting with the common model. */
    void run_epoch(const model &start)
    {
        marey::scope scope(MAREY_ID("epoch"));
        found_ = start;
        for (int step = 0; step < steps; step++)
            run_step();
    }

    const model &found() const
    {
        return found_;
    }

  private:
    void run_step()
    {
        MAREY_SCOPE("step");
        try {
            load();
            update();
        } catch (const std::runtime_error &) {
            marey_mark(MAREY_ID("skipped batch")); /* the ranges left by the exception have ended */
        }
    }

    void load()
    {
        marey::scope scope(MAREY_ID("load", .category = "data"));
        std::uniform_real_distribution<double> x(-1, 1);
        std::normal_distribution<double> noise(0, 0.1);
        batch_.clear();
        for (int i = 0; i < batch_size; i++) {
            const double at = x(random_);
            batch_.push_back({at, 2.0 * at - 1.0 + noise(random_)});
        }
        if (++loads_ % broken_every == 0)
            batch_.front().y = std::nan("");
        check();
    }

    void check() const
    {
        marey::scope scope(MAREY_ID("check", .category = "data"));
        for (const sample &s : batch_)
            if (std::isnan(s.y))
                throw std::runtime_error("a broken batch");
    }

    void update()
    {
        MAREY_SCOPE("update", .category = "model");
        model gradient;
        for (const sample &s : batch_) {
            const double error = found_.slope * s.x + found_.offset - s.y;
            gradient.slope += 2 * error * s.x / batch_size;
            gradient.offset += 2 * error / batch_size;
        }
        found_.slope -= 0.05 * gradient.slope;
        found_.offset -= 0.05 * gradient.offset;
    }

    std::mt19937 random_;
    std::vector<sample> batch_;
    model found_;
    int loads_ = 0;
};

} // namespace

int main()
{
    std::array<worker, 2> workers = {worker(1), worker(2)};
    model mean;
    for (int epoch = 1; epoch <= epochs; epoch++) {
        std::vector<std::thread> threads;
        for (worker &w : workers)
            threads.emplace_back([&w, mean] { w.run_epoch(mean); });
        MAREY_RANGE ("wait") {
            for (std::thread &t : threads)
                t.join();
        }
        mean.slope = (workers[0].found().slope + workers[1].found().slope) / 2;
        mean.offset = (workers[0].found().offset + workers[1].found().offset) / 2;
        marey_counter(MAREY_ID("slope"), mean.slope);
    }
    std::printf("y = %.3f x %+.3f\n", mean.slope, mean.offset);
    return 0;
}
