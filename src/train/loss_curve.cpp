#include "train/loss_curve.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/format_text.h"

namespace tera {
namespace {

using Json = nlohmann::json;
using Point = MetricsLog::Point;

double number_or_nan(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>()
                                                       : std::numeric_limits<double>::quiet_NaN();
}

void forget_from(std::vector<Point>& points, int64_t iteration) {
    while (!points.empty() && points.back().iteration >= iteration) points.pop_back();
}

/// What was logged from `iteration` on is about to be logged anew.
void resume_at(MetricsLog& log, int64_t iteration) {
    forget_from(log.training_loss, iteration);
    forget_from(log.learning_rate, iteration);
    forget_from(log.validation_loss, iteration);
    while (!log.resumed_at.empty() && log.resumed_at.back() >= iteration) log.resumed_at.pop_back();
    log.resumed_at.push_back(iteration);
}

void add_training(MetricsLog& log, const Json& line, int64_t iteration) {
    if (!log.training_loss.empty() && log.training_loss.back().iteration >= iteration) resume_at(log, iteration);
    log.training_loss.push_back({iteration, number_or_nan(line, "lm_loss")});
    log.learning_rate.push_back({iteration, number_or_nan(line, "learning_rate")});
    const double speed = number_or_nan(line, "tokens_per_second");
    if (std::isfinite(speed)) log.tokens_per_second = speed;
}

void add_line(MetricsLog& log, const Json& line) {
    const int64_t iteration = line.at("iteration").get<int64_t>();
    if (line.value("event", Json()) == "resume") {
        resume_at(log, iteration + 1);
    } else if (line.contains("validation")) {
        forget_from(log.validation_loss, iteration);
        log.validation_loss.push_back({iteration, number_or_nan(line["validation"], "lm_loss")});
    } else if (line.contains("lm_loss")) {
        add_training(log, line, iteration);
    }
}

bool is_metrics_line(const Json& line) {
    return line.is_object() && line.contains("iteration") && line["iteration"].is_number_integer() &&
           (!line.contains("validation") || line["validation"].is_object());
}

// ---- drawing

/// A number as an axis or a label shows it: few digits, no trailing zeros.
std::string short_number(double value, int digits = 4) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return text;
}

std::string coordinate(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

std::string with_thousands(int64_t value) { return grouped(value, ' '); }

std::string escaped(const std::string& text) {
    std::string out;
    for (const unsigned char c : text) {
        switch (c) {
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '&':
                out += "&amp;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                if (c >= 0x20) out += static_cast<char>(c);
        }
    }
    return out;
}

/// 1, 2 or 5 times a power of ten: the step that gives about `wanted` ticks over `span`.
double tick_step(double span, int wanted) {
    const double rough = span / wanted;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (rough <= factor * power) return factor * power;
    }
    return 10 * power;
}

/// A linear axis: values low..high on pixels from..to.
struct Axis {
    double low, high, from, to;
    double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
    std::vector<double> ticks(int wanted) const {
        const double step = tick_step(high - low, wanted);
        std::vector<double> all;
        // Counted, not accumulated, so that a tick at zero is zero; + 0.0 makes a negative zero plain.
        for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
            all.push_back(k * step + 0.0);
        return all;
    }
};

constexpr double width = 960, height = 560;
constexpr double left = 72, right = 812, loss_top = 64, loss_bottom = 380, rate_top = 426, rate_bottom = 506;
constexpr const char *training_colour = "#2563a8", *validation_colour = "#c2570c", *rate_colour = "#4b7f52";

class Picture {
  public:
    void text(double x, double y, const std::string& attributes, const std::string& content) {
        body_ += cat("<text x=\"", coordinate(x), "\" y=\"", coordinate(y), "\" ", attributes, ">", escaped(content),
                     "</text>\n");
    }
    void line(double x1, double y1, double x2, double y2, const char* style_class) {
        body_ += cat("<line x1=\"", coordinate(x1), "\" y1=\"", coordinate(y1), "\" x2=\"", coordinate(x2), "\" y2=\"",
                     coordinate(y2), "\" class=\"", style_class, "\"/>\n");
    }
    void dot(double x, double y, const char* colour) {
        body_ += cat("<circle cx=\"", coordinate(x), "\" cy=\"", coordinate(y), "\" r=\"3.2\" fill=\"", colour,
                     "\" stroke=\"#fff\"/>\n");
    }
    void curve(const std::vector<Point>& points, const Axis& x, const Axis& y, const char* colour, double thickness) {
        std::string path;
        bool drawing = false;
        for (const Point& p : points) {
            if (std::isfinite(p.value)) {
                path += cat(drawing ? "L" : "M", coordinate(x.at(static_cast<double>(p.iteration))), " ",
                            coordinate(y.at(p.value)));
            }
            drawing = std::isfinite(p.value);
        }
        body_ += cat("<path d=\"", path, "\" fill=\"none\" stroke=\"", colour, "\" stroke-width=\"", thickness,
                     "\" stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n");
    }
    std::string finish(const std::string& title) const {
        return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height, "\" width=\"", width,
                   "\" height=\"", height, "\" role=\"img\">\n<title>", escaped(title), "</title>\n",
                   "<style>text{font:12px system-ui,\"Segoe UI\",Helvetica,Arial,sans-serif;fill:#4a4a4a}"
                   ".grid{stroke:#e6e6e6}.axis{stroke:#9a9a9a}.mark{stroke:#9a9a9a;stroke-dasharray:3 3}</style>\n"
                   "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
                   body_, "</svg>\n");
    }

  private:
    std::string body_;
};

/// At most four points a pixel column (first, lowest, highest, last), so that a run of a million iterations stays a
/// small file and no spike is lost.
std::vector<Point> thinned(const std::vector<Point>& points, const Axis& x) {
    if (points.size() < 4000) return points;
    std::vector<Point> out;
    for (size_t begin = 0; begin < points.size();) {
        const auto column = std::floor(x.at(static_cast<double>(points[begin].iteration)));
        size_t end = begin, lowest = begin, highest = begin;
        while (end < points.size() && std::floor(x.at(static_cast<double>(points[end].iteration))) == column) {
            if (!(points[end].value >= points[lowest].value)) lowest = end;
            if (!(points[end].value <= points[highest].value)) highest = end;
            ++end;
        }
        std::vector<size_t> kept = {begin, lowest, highest, end - 1};
        std::sort(kept.begin(), kept.end());
        kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
        for (const size_t i : kept) out.push_back(points[i]);
        begin = end;
    }
    return out;
}

/// The range of finite values with a little air, never empty.
void widen(const std::vector<Point>& points, double& low, double& high) {
    for (const Point& p : points) {
        if (!std::isfinite(p.value)) continue;
        low = std::min(low, p.value);
        high = std::max(high, p.value);
    }
}

Axis vertical_axis(double low, double high, double bottom, double top) {
    if (!(low <= high)) low = 0, high = 1;
    const double span = high - low, air = span > 0 ? 0.05 * span : std::max(1e-12, 0.05 * std::fabs(high));
    return {low - (low >= 0 && low < air ? low : air), high + air, bottom, top};
}

void draw_frame(Picture& picture, const Axis& x, const Axis& y, int wanted_ticks, const char* label) {
    for (const double value : y.ticks(wanted_ticks)) {
        picture.line(left, y.at(value), right, y.at(value), "grid");
        picture.text(left - 8, y.at(value) + 4, "text-anchor=\"end\"", short_number(value));
    }
    picture.line(left, y.from, right, y.from, "axis");
    const double middle = (y.from + y.to) / 2;
    picture.text(18, middle, cat("text-anchor=\"middle\" transform=\"rotate(-90 18 ", coordinate(middle), ")\""),
                 label);
    for (const double value : x.ticks(8)) {
        if (value == std::floor(value)) picture.line(x.at(value), y.from, x.at(value), y.from + 4, "axis");
    }
}

const Point* last_finite(const std::vector<Point>& points) {
    for (auto p = points.rbegin(); p != points.rend(); ++p) {
        if (std::isfinite(p->value)) return &*p;
    }
    return nullptr;
}

/// Names and last values beside the ends of the two loss curves, kept apart when the ends are close.
void label_loss_curves(Picture& picture, const MetricsLog& log, const Axis& y) {
    const Point* training = last_finite(log.training_loss);
    const Point* validation = last_finite(log.validation_loss);
    double y_training = training == nullptr ? 0 : y.at(training->value);
    double y_validation = validation == nullptr ? 0 : y.at(validation->value);
    constexpr double apart = 30;
    if (training != nullptr && validation != nullptr && std::fabs(y_training - y_validation) < apart) {
        const double middle = std::min((y_training + y_validation) / 2, loss_bottom - apart);
        const double half = y_training <= y_validation ? -apart / 2 : apart / 2;
        y_training = middle + half;
        y_validation = middle - half;
    }
    auto label = [&](double y_at, const char* colour, const char* name, const Point* p) {
        if (p == nullptr) return;
        const std::string fill = cat("style=\"fill:", colour, ";font-weight:600\"");
        picture.text(right + 12, y_at - 1, fill, name);
        picture.text(right + 12, y_at + 13, cat("style=\"fill:", colour, "\""), short_number(p->value));
    };
    label(y_training, training_colour, "training loss", training);
    label(y_validation, validation_colour, "validation loss", validation);
}

}  // namespace

MetricsLog read_metrics(const std::string& path) {
    std::ifstream in(path);
    if (!in) usage_error("cannot read metrics file '", path, "': ", std::strerror(errno));
    MetricsLog log;
    int64_t number = 0;
    for (std::string text; std::getline(in, text);) {
        ++number;
        if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
        const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
        const bool cut_short = in.eof();  // no newline at its end
        if (!is_metrics_line(line)) {
            if (cut_short) break;
            usage_error(path, ":", number,
                        ": not a metrics line; expected a JSON object with an integer \"iteration\"");
        }
        add_line(log, line);
    }
    if (in.bad()) usage_error("cannot read metrics file '", path, "': ", std::strerror(errno));
    return log;
}

std::string loss_curve_svg(const MetricsLog& log, const std::string& title) {
    if (log.training_loss.empty()) usage_error("no training line in the metrics: nothing to draw");
    int64_t first = log.training_loss.front().iteration, last = log.training_loss.back().iteration;
    if (!log.validation_loss.empty()) {
        first = std::min(first, log.validation_loss.front().iteration);
        last = std::max(last, log.validation_loss.back().iteration);
    }
    const Axis x = {static_cast<double>(first), static_cast<double>(std::max(last, first + 1)), left, right};
    constexpr double infinite = std::numeric_limits<double>::infinity();
    double low = infinite, high = -infinite;
    widen(log.training_loss, low, high);
    widen(log.validation_loss, low, high);
    const Axis loss = vertical_axis(low, high, loss_bottom, loss_top);
    double rate_low = 0, rate_high = -infinite;
    widen(log.learning_rate, rate_low, rate_high);
    const Axis rate = vertical_axis(rate_low, rate_high, rate_bottom, rate_top);

    Picture picture;
    picture.text(left, 30, "style=\"font-size:17px;font-weight:600;fill:#222\"", title);
    picture.text(left, 49, "", loss_curve_summary(log));
    draw_frame(picture, x, loss, 7, "loss (nats per token)");
    draw_frame(picture, x, rate, 2, "learning rate");
    for (const double value : x.ticks(8)) {
        if (value != std::floor(value)) continue;
        picture.text(x.at(value), rate_bottom + 18, "text-anchor=\"middle\"", with_thousands(std::llround(value)));
    }
    picture.text((left + right) / 2, rate_bottom + 38, "text-anchor=\"middle\"", "iteration");
    for (const int64_t iteration : log.resumed_at) {
        const double at = x.at(static_cast<double>(iteration));
        picture.line(at, loss_top, at, rate_bottom, "mark");
        picture.text(at + 4, loss_top + 10, "style=\"font-size:11px\"", "resumed");
    }
    picture.curve(thinned(log.training_loss, x), x, loss, training_colour, 1.6);
    picture.curve(thinned(log.validation_loss, x), x, loss, validation_colour, 2);
    if (log.validation_loss.size() <= 200) {
        for (const Point& p : log.validation_loss) {
            if (std::isfinite(p.value)) {
                picture.dot(x.at(static_cast<double>(p.iteration)), loss.at(p.value), validation_colour);
            }
        }
    }
    picture.curve(thinned(log.learning_rate, x), x, rate, rate_colour, 1.6);
    label_loss_curves(picture, log, loss);
    if (const Point* p = last_finite(log.learning_rate)) {
        picture.text(right + 12, rate.at(p->value) + 4, cat("style=\"fill:", rate_colour, "\""),
                     short_number(p->value, 3));
    }
    return picture.finish(title);
}

std::string loss_curve_summary(const MetricsLog& log) {
    if (log.training_loss.empty()) return "no training line";
    std::string text = cat("iterations ", with_thousands(log.training_loss.front().iteration), " to ",
                           with_thousands(log.training_loss.back().iteration));
    const Point* last = last_finite(log.training_loss);
    const auto first = std::find_if(log.training_loss.begin(), log.training_loss.end(),
                                    [](const Point& p) { return std::isfinite(p.value); });
    if (last != nullptr) {
        text += cat(", training loss ", short_number(first->value), " to ", short_number(last->value));
    }
    const Point* best = nullptr;
    for (const Point& p : log.validation_loss) {
        if (std::isfinite(p.value) && (best == nullptr || p.value < best->value)) best = &p;
    }
    if (best != nullptr) {
        text += cat(", best validation loss ", short_number(best->value), " at iteration ",
                    with_thousands(best->iteration));
    }
    if (log.tokens_per_second > 0) text += cat(", ", with_thousands(std::llround(log.tokens_per_second)), " tokens/s");
    return text;
}

}  // namespace tera
