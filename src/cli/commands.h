// The sub-commands. Each lives in its own cmd_*.cpp, gets the words after its name and returns the exit code. What the
// user can fix is thrown as UsageError; main() prints it and exits with 2.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace tera {

using CommandArgs = std::vector<std::string>;

/// --help or -h, anywhere.
inline bool asks_for_help(const CommandArgs& args) {
    return std::any_of(args.begin(), args.end(), [](const auto& word) { return word == "--help" || word == "-h"; });
}

int cmd_pretrain(const CommandArgs& args);
int cmd_preprocess(const CommandArgs& args);
int cmd_tokenizer(const CommandArgs& args);
int cmd_example_corpus(const CommandArgs& args);
int cmd_data(const CommandArgs& args);
int cmd_generate(const CommandArgs& args);
int cmd_plan(const CommandArgs& args);
int cmd_verify(const CommandArgs& args);
int cmd_bench(const CommandArgs& args);
int cmd_launch(const CommandArgs& args);
int cmd_board(const CommandArgs& args);
int cmd_doctor(const CommandArgs& args);

}  // namespace tera
