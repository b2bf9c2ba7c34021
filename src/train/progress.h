// progress.txt in the save folder (--log-progress): one line when a job starts and one per checkpoint, over all jobs of
// a training run. Cumulative figures start with the first job of the same number of ranks, as the file tells.
#pragma once

#include <cstdint>
#include <string>

#include "train/log_lines.h"

namespace tera {

/// What an existing progress.txt says about the jobs before.
struct ProgressHistory {
    TimeStamp start;         ///< when the first job with this number of ranks began; .seconds 0: never
    double start_flops = 0;  ///< done before that
};
ProgressHistory read_progress(const std::string& path, std::int64_t gpus);

class ProgressLog {
  public:
    struct Settings {
        std::string folder;  ///< --save; "": writes nothing
        LogFormat format = LogFormat::core_0_12;
        std::int64_t gpus = 1;
        std::string job_id;
        double flops_so_far = 0, tokens_so_far = 0;  ///< at the start of this job
    };
    explicit ProgressLog(const Settings& settings);

    void starting() const;
    void saved(std::int64_t iteration, double flops_so_far, double tokens_so_far) const;

  private:
    void append(const std::string& text) const;

    Settings settings_;
    TimeStamp job_start_;
};

}  // namespace tera
