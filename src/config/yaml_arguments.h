// `--config run.yaml`: a flat map from flag names (with dashes or underscores) or their destinations to values.
//     num_layers: 12
//     data-path: [0.3, corpus_a, 0.7, corpus_b]
//     swiglu: true
//     disable-bias-linear: true        # or  add_bias_linear: false
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tera {

/// Values by dest, checked like those of the command line. UsageError names file, line and key.
std::map<std::string, std::vector<std::string>> read_yaml_arguments(const std::string& path);

}  // namespace tera
