// The loss curve of a run: reads the JSON-lines metrics file and draws it as an SVG picture.
// Two panels over one iteration axis: training and validation loss above, the learning rate below.
//
// Lines of the metrics file (docs/user-guide.md, "The metrics file"):
//   {"iteration":10,"consumed_samples":640,"lm_loss":7.1,"learning_rate":1e-4,"grad_norm":1.2,...}    training
//   {"iteration":100,"validation":{"lm_loss":5.2,"ppl":181.3}}                                       evaluation
//   {"iteration":100,"event":"resume"}                              a run went on from the checkpoint of iteration 100
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tera {

struct MetricsLog {
    struct Point {
        int64_t iteration;
        double value;  ///< NaN where the run had no number (a skipped or NaN iteration): a gap in the line
    };
    std::vector<Point> training_loss, validation_loss, learning_rate;  ///< iterations increase in each
    std::vector<int64_t> resumed_at;  ///< first iteration logged after the run went back to a checkpoint
    double tokens_per_second = 0;     ///< of the last training line that has it
};

/// Reads a metrics file. Where a run stopped after its last checkpoint and went on from there, the lines that were
/// overtaken are dropped. A last line cut short by a crash is passed over; any other bad line is a UsageError.
MetricsLog read_metrics(const std::string& path);

/// The picture; `title` may hold any text. UsageError when the log has no training line.
std::string loss_curve_svg(const MetricsLog& log, const std::string& title);

/// One line: iterations, first and last loss, best validation loss and where.
std::string loss_curve_summary(const MetricsLog& log);

}  // namespace tera
