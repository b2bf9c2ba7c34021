#include "train/bench_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/build_info.h"
#include "core/error.h"
#include "train/format_text.h"

namespace tera {
namespace {

constexpr std::size_t longest_kernels = 15, longest_gaps = 5;

std::string size_line(const std::string& name, std::size_t bytes, const std::string& rest = "") {
    return report_line(name, format_text("%12s", size_text(bytes).c_str()) + rest);
}

std::string mfu_text(const BenchResult& r, double flops) {
    const double rate = flops / r.median_seconds() * 1e-12;
    if (r.peak_tflops == 0) return format_text("%.3f TFLOP/s; the peak of this device is unknown", rate);
    return format_text("%.1f %%, %.1f of %.0f TFLOP/s", 100 * rate / r.peak_tflops, rate, r.peak_tflops);
}

std::string model_text(const BenchResult& r) {
    const RunConfig& c = r.config;
    return report_line("device", r.device == "CPU" ? cat("CPU, ", r.threads, r.threads == 1 ? " thread" : " threads")
                                                   : r.device) +
           report_line("model", cat(grouped(r.parameters), " parameters in ", c.params_dtype, ": ", c.num_layers,
                                    " layers, ", c.hidden_size, " wide, ", c.num_attention_heads, "/",
                                    c.num_query_groups, " heads of ", c.kv_channels, ", MLP ", c.ffn_hidden_size)) +
           report_line("vocabulary", cat(c.padded_vocab_size, " (", r.vocab_source, ")")) +
           report_line("step",
                       cat(r.micro_batches, r.micro_batches == 1 ? " micro-batch of " : " micro-batches of ",
                           c.micro_batch_size, " x ", c.seq_length, " = ", grouped(r.tokens_per_step), " tokens"));
}

std::string speed_text(const BenchResult& r) {
    const auto [low, high] = std::minmax_element(r.step_seconds.begin(), r.step_seconds.end());
    const auto rate = [&](double seconds) { return grouped(std::llround(r.tokens_per_second(seconds))); };
    std::string out = "\nspeed\n";
    out += report_line("  tokens/s", cat(rate(r.median_seconds()), " (median of ", r.step_seconds.size(), " steps; ",
                                         rate(*high), " .. ", rate(*low), ")"));
    out += report_line("  ms per step",
                       format_text("%.2f (%.2f .. %.2f)", r.median_seconds() * 1e3, *low * 1e3, *high * 1e3));
    out += report_line("  MFU, causal count", mfu_text(r, r.flops_causal));
    out += report_line("  MFU, full count", mfu_text(r, r.flops_full));
    out += report_line("  loss", format_text("%.4f in the first step, %.4f in the last", r.first_loss, r.last_loss));
    if (r.skipped_steps > 0)
        out += report_line("  skipped",
                           cat(r.skipped_steps, " of ", r.step_seconds.size(),
                               " timed steps updated nothing: the loss scale was too high; try more --warmup"));
    out += report_line("  first step",
                       format_text("done %.2f s after the process began: program loaded %.2f, device open %.2f, "
                                   "model built %.2f",
                                   r.first_step_at, r.loaded_at, r.device_at, r.model_at));
    return out;
}

std::string phases_text(const BenchResult& r) {
    std::string out = "\nphases of one step, each waited for (ms)\n";
    for (const auto& [name, ms] : r.phases) out += report_line("  " + name, format_text("%10.2f", ms));
    return out;
}

std::string rate_text(double tflops) { return tflops == 0 ? "  no room" : format_text("%9.3f", tflops); }

std::string ceilings_text(const Ceilings& c) {
    std::string out = "\nceilings, measured just now\n";
    out += report_line(cat("  GEMM ", c.square, "^3 ", c.square_dtype), rate_text(c.square_tflops) + " TFLOP/s");
    out +=
        report_line("  copy", c.copy_bytes_per_second == 0
                                  ? "no room"
                                  : format_text("%9.1f GB/s read + written (%lld MiB)", c.copy_bytes_per_second * 1e-9,
                                                static_cast<long long>(c.copy_bytes >> 20)));
    out += "  GEMMs of the model (TFLOP/s)            rows      out       in   forward     dgrad     wgrad\n";
    for (const GemmRates& g : c.gemms) {
        out += format_text("  %-34s%10lld%9lld%9lld", g.name.c_str(), static_cast<long long>(g.rows),
                           static_cast<long long>(g.out), static_cast<long long>(g.in)) +
               " " + rate_text(g.forward) + " " + rate_text(g.dgrad) + " " + rate_text(g.wgrad) + "\n";
    }
    return out;
}

std::string kernel_row(const KernelTime& k, double span, bool with_grid) {
    std::string name = k.name;
    if (with_grid && k.grid[0] > 0) name += cat(" [", k.grid[0], ",", k.grid[1], ",", k.grid[2], "]");
    return format_text("  %10.3f %5.1f %% %8.1f x  %-14s", k.ms, 100 * k.ms / span, k.calls, name_of(k.kind)) + name +
           "\n";
}

std::string kernels_text(const BenchResult& r, bool all) {
    if (!r.traced) return "\nkernels\n  not traced: " + r.why_not_traced + "; see the phases above\n";
    const KernelSummary& k = r.kernels;
    std::string out = "\nkernels of one step, by kind (ms, share, calls)\n";
    std::vector<std::size_t> order(kernel_kinds);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return k.kind_ms[a] > k.kind_ms[b]; });
    for (const std::size_t kind : order) {
        if (k.kind_calls[kind] == 0) continue;
        out += format_text("  %-20s%12.3f %6.1f %% %9.1f\n", name_of(static_cast<KernelKind>(kind)), k.kind_ms[kind],
                           100 * k.kind_ms[kind] / k.span_ms, k.kind_calls[kind]);
    }
    if (k.overlap_ms() > 0.0005) out += format_text("  %-20s%12.3f\n", "of these at once", k.overlap_ms());
    out += format_text("  %-20s%12.3f %6.1f %%\n", "gaps", k.gap_ms(), 100 * k.gap_ms() / k.span_ms);
    out += format_text("  %-20s%12.3f   100.0 %% %9.1f\n", "first to last", k.span_ms, k.launches);
    std::vector<KernelTime> rows = all ? k.kernels : k.by_name();
    if (!all && rows.size() > longest_kernels) rows.resize(longest_kernels);
    out += all ? "\nkernels of one step, by name and grid (ms, share, calls, kind)\n"
               : "\nlongest kernels of one step (ms, share, calls, kind)\n";
    for (const KernelTime& row : rows) out += kernel_row(row, k.span_ms, all);
    if (!k.gaps.empty()) out += "\nlongest gaps of one step (ms, count, longest in us)\n";
    for (std::size_t i = 0; i < std::min(k.gaps.size(), longest_gaps); ++i) {
        const GapTime& g = k.gaps[i];
        out +=
            format_text("  %10.3f %8.1f x %9.1f   ", g.ms, g.count, g.longest_us) + g.after + " -> " + g.before + "\n";
    }
    return out;
}

std::size_t memory_sum(const BenchResult& r) {
    std::size_t sum = 0;
    for (const auto& [name, bytes] : r.memory) sum += bytes;
    return sum;
}

std::string memory_text(const BenchResult& r) {
    std::string out = "\nmemory\n";
    for (const auto& [name, bytes] : r.memory) out += size_line("  " + name, bytes);
    out += size_line("  sum", memory_sum(r));
    if (r.planned > 0) out += size_line("  planned at the start", r.planned);
    if (r.device_total > 0) {
        const auto beyond = static_cast<double>(r.device_used) - static_cast<double>(memory_sum(r));
        out += size_line(
            "  driver reports", r.device_used,
            cat(" of ", size_text(r.device_total),
                format_text(" in use: %.2f GiB beyond the sum (context, code, other processes)", beyond / 0x1p30)));
    }
    out += size_line("  process, resident", r.resident, " at its highest");
    return out;
}

nlohmann::json kernels_json(const KernelSummary& k) {
    nlohmann::json out = {{"span_ms", k.span_ms},
                          {"busy_ms", k.busy_ms},
                          {"gap_ms", k.gap_ms()},
                          {"overlap_ms", k.overlap_ms()},
                          {"launches", k.launches}};
    for (std::size_t kind = 0; kind < kernel_kinds; ++kind) {
        out["by_kind"][name_of(static_cast<KernelKind>(kind))] = {{"ms", k.kind_ms[kind]},
                                                                  {"calls", k.kind_calls[kind]}};
    }
    out["kernels"] = nlohmann::json::array();
    for (const KernelTime& row : k.kernels) {
        out["kernels"].push_back({{"name", row.name},
                                  {"kind", name_of(row.kind)},
                                  {"grid", row.grid},
                                  {"calls", row.calls},
                                  {"ms", row.ms}});
    }
    out["gaps"] = nlohmann::json::array();
    for (const GapTime& g : k.gaps) {
        out["gaps"].push_back(
            {{"after", g.after}, {"before", g.before}, {"count", g.count}, {"ms", g.ms}, {"longest_us", g.longest_us}});
    }
    return out;
}

nlohmann::json ceilings_json(const Ceilings& c) {
    nlohmann::json out = {{"square", c.square},
                          {"square_dtype", c.square_dtype},
                          {"square_tflops", c.square_tflops},
                          {"copy_bytes", c.copy_bytes},
                          {"copy_gb_per_s", c.copy_bytes_per_second * 1e-9},
                          {"gemms", nlohmann::json::array()}};
    for (const GemmRates& g : c.gemms) {
        out["gemms"].push_back({{"name", g.name},
                                {"rows", g.rows},
                                {"out", g.out},
                                {"in", g.in},
                                {"forward_tflops", g.forward},
                                {"dgrad_tflops", g.dgrad},
                                {"wgrad_tflops", g.wgrad}});
    }
    return out;
}

}  // namespace

std::string bench_text(const BenchResult& result, bool all_kernels) {
    return model_text(result) + speed_text(result) + phases_text(result) + kernels_text(result, all_kernels) +
           ceilings_text(result.ceilings) + memory_text(result);
}

nlohmann::json bench_json(const BenchResult& r) {
    const RunConfig& c = r.config;
    const double seconds = r.median_seconds();
    const auto mfu = [&](double flops) {
        return r.peak_tflops == 0 ? nlohmann::json() : nlohmann::json(flops / seconds * 1e-12 / r.peak_tflops);
    };
    nlohmann::json out = {
        {"version", version_line()},
        {"device", r.device},
        {"threads", r.threads},
        {"model",
         {{"parameters", r.parameters},
          {"dtype", c.params_dtype},
          {"layers", c.num_layers},
          {"hidden", c.hidden_size},
          {"heads", c.num_attention_heads},
          {"kv_heads", c.num_query_groups},
          {"head_dim", c.kv_channels},
          {"ffn", c.ffn_hidden_size},
          {"padded_vocab", c.padded_vocab_size}}},
        {"batch",
         {{"micro_batch_size", c.micro_batch_size},
          {"micro_batches", r.micro_batches},
          {"sequence", c.seq_length},
          {"tokens_per_step", r.tokens_per_step}}},
        {"tokens_per_s", r.tokens_per_second(seconds)},
        {"median_step_ms", seconds * 1e3},
        {"step_seconds", r.step_seconds},
        {"tflops_causal", r.flops_causal / seconds * 1e-12},
        {"tflops_full", r.flops_full / seconds * 1e-12},
        {"peak_tflops", r.peak_tflops == 0 ? nlohmann::json() : nlohmann::json(r.peak_tflops)},
        {"mfu_causal", mfu(r.flops_causal)},
        {"mfu_full", mfu(r.flops_full)},
        {"first_loss", r.first_loss},
        {"last_loss", r.last_loss},
        {"skipped_steps", r.skipped_steps},
        {"start_s",
         {{"loaded", r.loaded_at}, {"device", r.device_at}, {"model", r.model_at}, {"first_step", r.first_step_at}}},
        {"ceilings", ceilings_json(r.ceilings)},
        {"kernels", r.traced ? kernels_json(r.kernels) : nlohmann::json()},
        {"why_not_traced", r.why_not_traced},
        {"resident_bytes", r.resident},
    };
    for (const auto& [name, ms] : r.phases) out["phases_ms"][name] = ms;
    for (const auto& [name, bytes] : r.memory) out["memory_bytes"][name] = bytes;
    out["memory_bytes"]["sum"] = memory_sum(r);
    out["planned_bytes"] = r.planned;
    out["device_used_bytes"] = r.device_used;
    out["device_total_bytes"] = r.device_total;
    return out;
}

}  // namespace tera
