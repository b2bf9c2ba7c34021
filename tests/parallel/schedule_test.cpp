#include "parallel/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "support/expect_usage_error.h"

namespace tera {
namespace {

using Kind = PipelineStep::Kind;

std::string text_of(const std::vector<PipelineStep>& steps) {
    std::string text;
    for (const PipelineStep& s : steps) text += (text.empty() ? "" : " ") + s.text();
    return text;
}

TEST(Schedule, one_stage_alternates) {
    EXPECT_EQ(text_of(schedule_1f1b({.micro_batches = 3}, 0)), "F0 B0 F1 B1 F2 B2");
}

TEST(Schedule, one_forward_one_backward) {
    const PipelineShape shape{.stages = 4, .micro_batches = 6};
    EXPECT_EQ(text_of(schedule_1f1b(shape, 0)), "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
    EXPECT_EQ(text_of(schedule_1f1b(shape, 2)), "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
    EXPECT_EQ(text_of(schedule_1f1b(shape, 3)), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
    EXPECT_EQ(text_of(schedule_1f1b({.stages = 4, .micro_batches = 2}, 0)), "F0 F1 B0 B1") << "fewer than stages";
}

TEST(Schedule, interleaved) {
    const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 4};
    // warm-up of stage 0: 2·1 + 1·2 = 4 forwards, of stage 1: 2
    EXPECT_EQ(text_of(schedule_1f1b(shape, 0)), "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3");
    EXPECT_EQ(text_of(schedule_1f1b(shape, 1)), "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3");
}

TEST(Schedule, forwards_and_backwards_take_turns_in_between) {
    const auto turns = [](const PipelineShape& shape, int stage) {
        std::vector<PipelineStep> steps = schedule_1f1b(shape, stage);
        const Turns t = turns_of(steps);
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(t.end), steps.end());
        steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(t.begin));
        return text_of(steps);
    };
    EXPECT_EQ(turns({.stages = 4, .micro_batches = 6}, 0), "F3 B0 F4 B1 F5 B2");
    EXPECT_EQ(turns({.stages = 4, .micro_batches = 6}, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
    EXPECT_EQ(turns({.stages = 4, .micro_batches = 2}, 0), "F1 B0");
    EXPECT_EQ(turns({.stages = 2, .chunks = 2, .micro_batches = 4}, 0), "F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1");
    EXPECT_EQ(turns_of({}).end, 0u);
}

/// Time at which each step ends when a forward takes 1 and a backward 2 and a stage waits for what it needs; fails if
/// the stages wait for each other for ever. Returns the end of the last step.
double simulate(const PipelineShape& shape) {
    std::vector<std::vector<PipelineStep>> steps;
    for (int p = 0; p < shape.stages; ++p) steps.push_back(schedule_1f1b(shape, p));
    std::map<std::pair<std::int64_t, int>, double> forward_end, backward_end;  // (micro-batch, place)
    std::vector<std::size_t> next(steps.size(), 0);
    std::vector<double> free(steps.size(), 0);
    const int last_place = shape.stages * shape.chunks - 1;
    double end = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int p = 0; p < shape.stages; ++p) {
            const auto at = static_cast<std::size_t>(p);
            if (next[at] == steps[at].size()) continue;
            const PipelineStep& s = steps[at][next[at]];
            const int place = s.chunk * shape.stages + p;
            const bool forward = s.kind == Kind::forward;
            const auto& source = forward || place == last_place ? forward_end : backward_end;
            const int from = forward ? place - 1 : (place == last_place ? place : place + 1);
            double ready = 0;
            if (from >= 0) {
                const auto found = source.find({s.micro_batch, from});
                if (found == source.end()) continue;
                ready = found->second;
            }
            EXPECT_TRUE(forward || forward_end.count({s.micro_batch, place})) << "backward before forward";
            free[at] = std::max(free[at], ready) + (forward ? 1 : 2);
            (forward ? forward_end : backward_end)[{s.micro_batch, place}] = free[at];
            end = std::max(end, free[at]);
            ++next[at];
            moved = true;
        }
    }
    for (std::size_t p = 0; p < steps.size(); ++p) EXPECT_EQ(next[p], steps[p].size()) << "stage " << p << " is stuck";
    return end;
}

TEST(Schedule, every_shape_is_complete_and_legal) {
    for (const int stages : {1, 2, 3, 4, 6})
        for (const int chunks : {1, 2, 3})
            for (const std::int64_t micro_batches : {1, 2, 3, 4, 6, 8, 12, 13})
                for (const std::int64_t group : {0, stages + 2}) {
                    const std::int64_t g = group ? group : stages, rest = micro_batches % g;
                    if (chunks > 1 && (stages == 1 || (rest != 0 && rest < stages))) continue;
                    const PipelineShape shape{stages, chunks, micro_batches, group};
                    SCOPED_TRACE(cat(stages, " stages, ", chunks, " chunks, ", micro_batches, " micro-batches"));
                    for (int p = 0; p < stages; ++p) {
                        std::set<std::string> once;
                        const auto steps = schedule_1f1b(shape, p);
                        for (const PipelineStep& s : steps) EXPECT_TRUE(once.insert(s.text()).second) << s.text();
                        EXPECT_EQ(static_cast<std::int64_t>(steps.size()), 2 * micro_batches * chunks);
                        if (chunks == 1) {
                            EXPECT_EQ(most_in_flight(steps), std::min<std::int64_t>(stages - p, micro_batches));
                        }
                    }
                    simulate(shape);
                }
}

// The bubble is (P-1)/(M·V) of the ideal time (Narayanan et al., 2021).
TEST(Schedule, bubble) {
    for (const int stages : {2, 4, 8})
        for (const int chunks : {1, 2, 4}) {
            const std::int64_t micro_batches = 4 * stages;
            const double ideal = 3.0 * static_cast<double>(micro_batches) * chunks;
            EXPECT_EQ(simulate({stages, chunks, micro_batches, 0}), ideal + 3.0 * (stages - 1))
                << stages << " stages, " << chunks << " chunks";
        }
}

TEST(Schedule, micro_batches_that_do_not_fit_are_named) {
    expect_usage_error([] { schedule_1f1b({.stages = 4, .chunks = 2, .micro_batches = 6}, 0); },
                       {"6 micro-batches", "groups of 4", "--global-batch-size"});
}

/// Runs all stages with room for `room` messages in each channel: a step ends when its message has found room. The
/// order in which stages are tried is drawn. Returns how many steps were done.
std::size_t run_with_room(const PipelineShape& shape, std::int64_t room, unsigned seed) {
    std::vector<std::vector<PipelineStep>> steps;
    for (int p = 0; p < shape.stages; ++p) steps.push_back(schedule_1f1b(shape, p));
    const int places = shape.stages * shape.chunks;
    using Channel = std::pair<Kind, int>;  // kind of work and receiving stage
    std::map<Channel, std::vector<std::pair<std::int64_t, int>>> channels;
    std::vector<std::size_t> at(steps.size(), 0);
    std::vector<char> computed(steps.size(), 0);  // the message is still to be sent
    std::mt19937 draw(seed);
    std::size_t done = 0;
    const auto try_step = [&](int p) {
        const auto i = static_cast<std::size_t>(p);
        if (at[i] == steps[i].size()) return false;
        const PipelineStep& s = steps[i][at[i]];
        const bool forward = s.kind == Kind::forward;
        const int place = s.chunk * shape.stages + p, next = place + (forward ? 1 : -1);
        if (!computed[i]) {
            if (forward ? place > 0 : place < places - 1) {
                auto& in = channels[{s.kind, p}];
                if (in.empty()) return false;
                EXPECT_EQ(in.front(), std::make_pair(s.micro_batch, place)) << "messages come in the order of work";
                in.erase(in.begin());
            }
            computed[i] = 1;
            return true;
        }
        if (next >= 0 && next < places) {
            auto& out = channels[{s.kind, next % shape.stages}];
            if (static_cast<std::int64_t>(out.size()) == room) return false;
            out.emplace_back(s.micro_batch, next);
        }
        computed[i] = 0;
        ++at[i];
        ++done;
        return true;
    };
    std::vector<int> order;
    for (int p = 0; p < shape.stages; ++p) order.push_back(p);
    for (bool moved = true; moved;) {
        moved = false;
        std::shuffle(order.begin(), order.end(), draw);
        for (const int p : order) moved = try_step(p) || moved;
    }
    return done;
}

TEST(Schedule, with_the_room_it_asks_for_no_stage_waits_for_ever) {
    for (const int stages : {2, 3, 4, 8}) {
        for (const int chunks : {1, 2, 4}) {
            for (const int groups : {1, 2, 5}) {
                const PipelineShape shape{.stages = stages, .chunks = chunks, .micro_batches = groups * stages};
                const std::int64_t room = most_on_their_way(shape);
                EXPECT_LE(room, 2 * chunks) << stages << " stages: a few messages, whatever their number";
                for (unsigned seed = 0; seed < 3; ++seed)
                    EXPECT_EQ(run_with_room(shape, room, seed),
                              static_cast<std::size_t>(2 * stages * chunks * groups * stages))
                        << stages << " stages, " << chunks << " chunks, " << groups << " groups, room " << room;
            }
        }
    }
    EXPECT_EQ(most_on_their_way({.micro_batches = 4}), 0);
    EXPECT_EQ(most_on_their_way({.stages = 8, .micro_batches = 32}), 1) << "a forward is taken up at once";
    EXPECT_EQ(most_on_their_way({.stages = 4, .chunks = 2, .micro_batches = 16}), 2);
    EXPECT_EQ(most_on_their_way({.stages = 8, .chunks = 2, .micro_batches = 32}), 4);
}

TEST(Schedule, micro_batches_in_use) {
    const PipelineShape plain{.stages = 4, .micro_batches = 8}, both{.stages = 2, .chunks = 2, .micro_batches = 4};
    EXPECT_EQ(most_micro_batches(schedule_1f1b(plain, 0)), 4);
    EXPECT_EQ(most_micro_batches(schedule_1f1b(plain, 3)), 1);
    EXPECT_EQ(most_micro_batches(schedule_1f1b(both, 0)), 4) << "F0 F1 F0.1 F1.1 F2 B0.1 F3 come before B0";
    EXPECT_EQ(most_micro_batches(schedule_1f1b({.micro_batches = 5}, 0)), 1);
}

}  // namespace
}  // namespace tera
