// The parts of `teratron data` that read tokens.
#pragma once

#include "cli/commands.h"

namespace tera {

int cmd_data_inspect(const CommandArgs& args);
int cmd_data_export(const CommandArgs& args);

}  // namespace tera
