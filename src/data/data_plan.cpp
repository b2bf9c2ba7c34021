#include "data/data_plan.h"

#include "core/error.h"

namespace tera {
namespace {

void require_absent(bool given, const char* flag, const char* other) {
    if (given) usage_error(flag, " and ", other, " contradict each other; give only one of them");
}

}  // namespace

DataPlan plan_data(const DataConfig& c) {
    const bool lists = !c.train_data_path.empty() || !c.valid_data_path.empty() || !c.test_data_path.empty();
    const bool per_split = lists || !c.per_split_data_args_path.empty();
    const bool shared = !c.data_path.empty() || !c.data_args_path.empty();
    DataPlan plan;
    if (c.mock_data) {
        require_absent(shared, "--mock-data", "--data-path");
        require_absent(per_split, "--mock-data", "--train-data-path");
        return plan;
    }
    if (!shared && !per_split)
        usage_error("no data: give --data-path PREFIX (made by preprocess), or --mock-data to try without");
    require_absent(shared && per_split, "--data-path", "paths of single splits");
    if (shared) {
        require_absent(!c.data_path.empty() && !c.data_args_path.empty(), "--data-path", "--data-args-path");
        plan.shared = c.data_args_path.empty() ? parse_blend(c.data_path, "--data-path")
                                               : parse_blend(read_data_args(c.data_args_path), c.data_args_path);
        return plan;
    }
    require_absent(lists && !c.per_split_data_args_path.empty(), "--train-data-path", "--per-split-data-args-path");
    if (!c.split.empty()) usage_error("--split has no meaning with a path for each split; leave it out");
    if (!c.per_split_data_args_path.empty()) {
        const auto words = read_per_split_data_args(c.per_split_data_args_path);
        for (std::size_t i = 0; i < 3; ++i)
            if (words[i]) plan.per_split[i] = parse_blend(*words[i], c.per_split_data_args_path);
        return plan;
    }
    const std::array<const std::vector<std::string>*, 3> words = {&c.train_data_path, &c.valid_data_path,
                                                                  &c.test_data_path};
    constexpr std::array<const char*, 3> flags = {"--train-data-path", "--valid-data-path", "--test-data-path"};
    for (std::size_t i = 0; i < 3; ++i)
        if (!words[i]->empty()) plan.per_split[i] = parse_blend(*words[i], flags[i]);
    return plan;
}

}  // namespace tera
