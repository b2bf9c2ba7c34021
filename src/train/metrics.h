// The metrics file: one JSON object per line, written as soon as it is known. train/loss_curve.h reads it.
//
//   {"iteration":10,"consumed_samples":640,"lm_loss":7.1,"learning_rate":0.0001,"grad_norm":1.2,"loss_scale":1.0,
//    "elapsed_ms":512.3,"tokens_per_second":8000.0}                 a logged step
//   {"iteration":100,"validation":{"lm_loss":5.2,"ppl":181.3}}      an evaluation ("test" at the end of a run)
//   {"iteration":100,"event":"resume"}                              the run goes on from iteration 100
//
// A number that is not there (no loss or gradient norm after an overflow) is null.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "train/log_lines.h"

namespace tera {

class MetricsFile {
  public:
    using Tell = std::function<void(const std::string& line)>;
    /// Opens `path` for a run that begins after `iteration`: earlier lines stay, later ones (of a run that went on past
    /// its last checkpoint) and a last line cut short are dropped. A run that begins at 0 moves an earlier run's file
    /// aside. path "": writes nothing. UsageError if the file cannot be written or is something else. Later a file that
    /// can no longer be written is told of once, and the run goes on without it.
    explicit MetricsFile(const std::string& path, std::int64_t iteration, Tell tell = {});
    ~MetricsFile();
    MetricsFile(const MetricsFile&) = delete;
    MetricsFile& operator=(const MetricsFile&) = delete;

    bool on() const { return file_ != nullptr; }
    std::int64_t dropped() const { return dropped_; }  ///< lines dropped when it was opened

    void step(const StepReport& report, double tokens_per_second);
    /// what: "validation" or "test".
    void evaluation(std::int64_t iteration, const std::string& what, const NamedLosses& losses);

  private:
    void write(const std::string& line);

    std::FILE* file_ = nullptr;
    std::string path_;
    Tell tell_;
    std::int64_t dropped_ = 0;
};

}  // namespace tera
