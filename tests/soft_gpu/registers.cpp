#include "soft_gpu/registers.h"

#include <algorithm>
#include <map>
#include <queue>

namespace soft_gpu {
namespace {

/// A set of registers, by number.
class Set {
  public:
    explicit Set(std::size_t n) : words_((n + 63) / 64) {}
    bool has(std::size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
    void add(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
    void remove(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
    /// Whether there was something new.
    bool add_all(const Set& other) {
        bool more = false;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            more |= (other.words_[i] & ~words_[i]) != 0;
            words_[i] |= other.words_[i];
        }
        return more;
    }
    template <class F>
    void each(F f) const {
        for (std::size_t w = 0; w < words_.size(); ++w)
            for (std::uint64_t left = words_[w]; left != 0; left &= left - 1)
                f(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
    }

  private:
    std::vector<std::uint64_t> words_;
};

/// Steps that are made one after another.
struct Run {
    std::size_t begin, end;
    std::vector<std::size_t> next;
};

std::vector<Run> runs_of(const Function& f, const std::vector<Uses>& uses) {
    const std::size_t n = f.steps.size();
    std::vector<bool> begins(n + 1, false);
    begins[0] = true;
    for (std::size_t i = 0; i < n; ++i) {
        if (uses[i].branches) begins[f.steps[i].target] = true;
        if (uses[i].branches || !uses[i].goes_on) begins[i + 1] = true;
    }
    std::vector<Run> runs;
    std::vector<std::size_t> run_at(n + 1, 0);
    for (std::size_t i = 0; i < n; ++i) {
        if (begins[i]) runs.push_back({i, i, {}});
        runs.back().end = i + 1;
        run_at[i] = runs.size() - 1;
    }
    for (Run& r : runs) {
        const std::size_t last = r.end - 1;
        if (uses[last].branches && f.steps[last].target < n) r.next.push_back(run_at[f.steps[last].target]);
        if (uses[last].goes_on && r.end < n) r.next.push_back(run_at[r.end]);
    }
    return runs;
}

/// A register is needed from the first to the last of these steps, at the most.
struct Span {
    std::size_t first = SIZE_MAX, last = 0;
    void include(std::size_t step) {
        first = std::min(first, step);
        last = std::max(last, step);
    }
};

class Spans {
  public:
    Spans(const std::vector<Run>& runs, const std::vector<Uses>& numbered, std::size_t registers)
        : runs_(runs), uses_(numbered), spans_(registers) {
        std::vector<Set> needed(runs.size(), Set(registers));  // when a run begins
        for (bool more = true; more;) {
            more = false;
            for (std::size_t i = runs.size(); i-- > 0;) {
                Set live = behind(i, needed);
                walk(i, live);
                more |= needed[i].add_all(live);
            }
        }
        for (std::size_t i = 0; i < runs.size(); ++i) {
            Set live = behind(i, needed);
            live.each([&](std::size_t r) { spans_[r].include(runs[i].end - 1); });
            walk(i, live);
            live.each([&](std::size_t r) { spans_[r].include(runs[i].begin); });
        }
        for (std::size_t step = 0; step < uses_.size(); ++step)
            for (const auto* list : {&uses_[step].reads, &uses_[step].writes})
                for (const std::int32_t r : *list) spans_[static_cast<std::size_t>(r)].include(step);
    }
    const std::vector<Span>& all() const { return spans_; }

  private:
    Set behind(std::size_t run, const std::vector<Set>& needed) const {
        Set live(spans_.size());
        for (const std::size_t next : runs_[run].next) live.add_all(needed[next]);
        return live;
    }
    void walk(std::size_t run, Set& live) const {
        for (std::size_t step = runs_[run].end; step-- > runs_[run].begin;) {
            for (const std::int32_t r : uses_[step].writes) live.remove(static_cast<std::size_t>(r));
            for (const std::int32_t r : uses_[step].reads) live.add(static_cast<std::size_t>(r));
        }
    }

    const std::vector<Run>& runs_;
    const std::vector<Uses>& uses_;
    std::vector<Span> spans_;
};

}  // namespace

void share_registers(Function& f, const std::vector<Uses>& uses) {
    // Registers by number: their first places, in order.
    std::map<std::int32_t, std::int32_t> numbers;
    for (const Uses& u : uses)
        for (const auto* list : {&u.reads, &u.writes})
            for (const std::int32_t at : *list) numbers.try_emplace(at, 0);
    std::vector<std::int32_t> places;
    for (auto& [at, number] : numbers) number = static_cast<std::int32_t>(places.size()), places.push_back(at);
    std::vector<Uses> numbered = uses;
    for (Uses& u : numbered)
        for (auto* list : {&u.reads, &u.writes})
            for (std::int32_t& at : *list) at = numbers[at];

    const std::vector<Run> runs = runs_of(f, uses);
    const Spans spans(runs, numbered, places.size());

    std::vector<std::size_t> order(places.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return spans.all()[a].first < spans.all()[b].first; });
    using Ending = std::pair<std::size_t, std::size_t>;  // last step, register
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> held;
    std::vector<std::int32_t> free_narrow, free_wide, given(places.size());
    std::size_t words = 0;
    for (const std::size_t r : order) {
        for (; !held.empty() && held.top().first < spans.all()[r].first; held.pop()) {
            const std::size_t old = held.top().second;
            (f.wide_at(places[old]) ? free_wide : free_narrow).push_back(given[old]);
        }
        const bool wide = f.wide_at(places[r]);
        std::vector<std::int32_t>& free = wide ? free_wide : free_narrow;
        if (free.empty()) {
            free.push_back(static_cast<std::int32_t>(words));
            words += wide ? 2 * lanes : lanes;
        }
        given[r] = free.back();
        free.pop_back();
        held.push({spans.all()[r].last, r});
    }
    const auto move = [&](Value& v) {
        if (v && v.at >= 0) v.at = given[static_cast<std::size_t>(numbers.at(v.at))];
    };
    for (Step& s : f.steps)
        for (Value* v : {&s.d, &s.a, &s.b, &s.c, &s.guard}) move(*v);
    for (Value& v : f.values) move(v);
    for (Filled& x : f.filled) move(x.at);
    f.register_words = words;
    f.wide_registers.clear();
}

}  // namespace soft_gpu
