#include "train/kernel_summary.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "core/error.h"

namespace tera {
namespace {

double ms(std::uint64_t ns) { return static_cast<double>(ns) * 1e-6; }

KernelKind kind_of(const DeviceWork& work) {
    return work.kind == DeviceWork::Kind::kernel ? kind_of_kernel(work.name) : KernelKind::copy;
}

template <class T>
void longest_first(std::vector<T>& rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const T& a, const T& b) { return a.ms > b.ms; });
}

}  // namespace

double KernelSummary::overlap_ms() const { return std::accumulate(kind_ms.begin(), kind_ms.end(), 0.0) - busy_ms; }

std::vector<KernelTime> KernelSummary::by_name() const {
    std::map<std::string, KernelTime> rows;
    for (const KernelTime& kernel : kernels) {
        KernelTime& row = rows.try_emplace(kernel.name, KernelTime{kernel.name, kernel.kind, {}, 0, 0}).first->second;
        row.calls += kernel.calls;
        row.ms += kernel.ms;
    }
    std::vector<KernelTime> out;
    for (const auto& [name, row] : rows) out.push_back(row);
    longest_first(out);
    return out;
}

KernelSummary summarize(const std::vector<DeviceWork>& work, int steps) {
    TERA_CHECK(steps > 0, steps);
    KernelSummary sum;
    if (work.empty()) return sum;
    const double share = 1.0 / steps;
    std::map<std::tuple<std::string, int, int, int>, KernelTime> kernels;
    std::map<std::pair<std::string, std::string>, GapTime> gaps;
    std::map<std::string, std::pair<std::string, KernelKind>> known;  // shortening and sorting names once each
    const std::uint64_t begin = work.front().start_ns;
    std::uint64_t end = begin, idle = 0;
    std::string last;
    for (const DeviceWork& w : work) {
        const auto [at, fresh] = known.try_emplace(w.name);
        if (fresh) at->second = {short_kernel_name(w.name), kind_of(w)};
        const auto& [name, kind] = at->second;
        const double time = ms(w.end_ns - w.start_ns) * share;
        KernelTime& row = kernels[{name, w.grid[0], w.grid[1], w.grid[2]}];
        row.name = name;
        row.kind = kind;
        row.grid = w.grid;
        row.calls += share;
        row.ms += time;
        sum.kind_ms[static_cast<std::size_t>(kind)] += time;
        sum.kind_calls[static_cast<std::size_t>(kind)] += share;
        sum.launches += share;
        if (w.start_ns > end) {
            const std::uint64_t gap = w.start_ns - end;
            idle += gap;
            GapTime& place = gaps[{last, name}];
            place.after = last;
            place.before = name;
            place.count += share;
            place.ms += ms(gap) * share;
            place.longest_us = std::max(place.longest_us, static_cast<double>(gap) * 1e-3);
        }
        if (w.end_ns >= end) {
            end = w.end_ns;
            last = name;
        }
    }
    sum.span_ms = ms(end - begin) * share;
    sum.busy_ms = ms(end - begin - idle) * share;
    for (const auto& [key, row] : kernels) sum.kernels.push_back(row);
    for (const auto& [key, row] : gaps) sum.gaps.push_back(row);
    longest_first(sum.kernels);
    longest_first(sum.gaps);
    return sum;
}

}  // namespace tera
