#include "train/timers.h"

#include <algorithm>

#include "core/error.h"
#include "train/format_text.h"

namespace tera {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Timers::Timer* Timers::find(const std::string& name) {
    for (Timer& t : timers_) {
        if (t.name == name) return &t;
    }
    return nullptr;
}

void Timers::start(const char* name, int level) {
    if (level > level_) return;
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

std::string Timers::report(const std::vector<std::string>& names, const std::string& option, double normalizer) {
    std::vector<TimerRow> rows;
    for (const std::string& name : names) {
        Timer* timer = find(name);
        if (timer == nullptr || !timer->ran) continue;
        rows.push_back({name, {timer->seconds * 1000 / normalizer}});
        timer->seconds = 0;
        timer->ran = timer->running;
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
                text += format_text("\n     rank %2zu: %.2f", rank, row.per_rank_ms[rank]);
            }
            continue;
        }
        std::string name = row.name + " ";
        if (name.size() < 48) name.resize(48, '.');
        const auto [low, high] = std::minmax_element(row.per_rank_ms.begin(), row.per_rank_ms.end());
        text += "\n    " + name + ": ";
        text += option == "max" ? format_text("%.2f", *high) : format_text("(%.2f, %.2f)", *low, *high);
    }
    return text;
}

}  // namespace tera
