#include "train/timers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "train/format_text.h"

namespace tera {

using Clock = std::chrono::steady_clock;

namespace {

bool ran(double ms) { return ms >= 0; }

}  // namespace

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Timers::Timer* Timers::find(const std::string& name) {
    for (Timer& t : timers_) {
        if (t.name == name) return &t;
    }
    return nullptr;
}

void Timers::start(const char* name, int level) {
    if (!takes(level)) return;
    Timer* timer = find(name);
    if (timer == nullptr) timer = &timers_.emplace_back(Timer{name, level, 0, false, false, {}});
    TERA_CHECK(!timer->running, "timer ", name, " runs already");
    timer->running = timer->ran = true;
    wait(level);
    timer->started = Clock::now();
}

void Timers::stop(const char* name) {
    Timer* timer = find(name);
    if (timer == nullptr || !timer->running) return;  // above the chosen level
    wait(timer->level);
    timer->seconds += seconds_since(timer->started);
    timer->running = false;
}

double Timers::seconds(const std::string& name) const {
    for (const Timer& t : timers_) {
        if (t.name == name) return t.seconds;
    }
    return 0;
}

/// Sets it back; below 0 if it did not run.
double Timers::take_ms(const std::string& name) {
    Timer* timer = find(name);
    if (timer == nullptr || !timer->ran) return -1;
    timer->ran = timer->running;
    return std::exchange(timer->seconds, 0) * 1000;
}

std::string Timers::report(Comm& world, const Exec& exec, const std::vector<std::string>& names,
                           const std::string& option, double normalizer) {
    const std::size_t ranks = static_cast<std::size_t>(world.size()), count = names.size();
    std::vector<double> all(ranks * count);  // every rank puts its own in their place
    for (std::size_t i = 0; i < count; ++i)
        all[static_cast<std::size_t>(world.rank()) * count + i] = take_ms(names[i]) / normalizer;
    world.all_reduce(exec, tensor_over(all.data(), {static_cast<std::int64_t>(all.size())}), Reduce::sum);
    std::vector<TimerRow> rows;
    for (std::size_t i = 0; i < count; ++i) {
        TimerRow row{names[i], {}};
        for (std::size_t rank = 0; rank < ranks; ++rank) row.per_rank_ms.push_back(all[rank * count + i]);
        if (std::any_of(row.per_rank_ms.begin(), row.per_rank_ms.end(), ran)) rows.push_back(std::move(row));
    }
    return timer_block(rows, option);
}

std::string timer_block(const std::vector<TimerRow>& rows, const std::string& option) {
    if (rows.empty()) return "";
    std::string text = option == "max"   ? "max time across ranks (ms):"
                       : option == "all" ? "times across ranks (ms):"
                                         : "(min, max) time across ranks (ms):";
    for (const TimerRow& row : rows) {
        if (option == "all") {
            text += "\n  " + row.name + ":";
            for (std::size_t rank = 0; rank < row.per_rank_ms.size(); ++rank) {
                if (ran(row.per_rank_ms[rank]))
                    text += format_text("\n     rank %2zu: %.2f", rank, row.per_rank_ms[rank]);
            }
            continue;
        }
        std::string name = row.name + " ";
        if (name.size() < 48) name.resize(48, '.');
        std::vector<double> times;
        std::copy_if(row.per_rank_ms.begin(), row.per_rank_ms.end(), std::back_inserter(times), ran);
        const auto [low, high] = std::minmax_element(times.begin(), times.end());
        text += "\n    " + name + ": ";
        text += option == "max" ? format_text("%.2f", *high) : format_text("(%.2f, %.2f)", *low, *high);
    }
    return text;
}

}  // namespace tera
