// teratron board: the loss curve of a run as a picture.
#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "config/arg_parser.h"
#include "core/error.h"
#include "io/durable_file.h"
#include "train/loss_curve.h"

namespace tera {

int cmd_board(const CommandArgs& args) {
    ArgParser parser("teratron board", "Draws the loss curve of a run, from the file --metrics-file wrote.");
    parser.option("metrics", ArgType::text).help("JSON-lines metrics file of a run").required();
    parser.option("svg", ArgType::text).help("picture to write").required();
    parser.option("title", ArgType::text).help("heading of the picture (default: the name of the metrics file)");
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    const std::string metrics = parsed.text("metrics"), svg = parsed.text("svg");
    const MetricsLog log = read_metrics(metrics);
    if (log.training_loss.empty()) usage_error("'", metrics, "' has no training line yet: nothing to draw");
    const std::string title =
        parsed.given("title") ? parsed.text("title") : std::filesystem::path(metrics).filename().string();
    write_file_durably(svg, loss_curve_svg(log, title));
    std::printf("%s\nwrote %s\n", loss_curve_summary(log).c_str(), svg.c_str());
    return 0;
}

}  // namespace tera
