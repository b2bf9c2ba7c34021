// training_state/state.json: the numbers of a checkpoint, and what its files must hold.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/checkpoint.h"

namespace tera {

constexpr int checkpoint_format_version = 1;

/// Of one safetensors file.
struct FileRecord {
    std::uint64_t bytes = 0;
    std::map<std::string, std::string> checksums;  ///< CRC-32C by tensor, as text
};

struct StateFile {
    CheckpointState state;
    ModelConfig model;                        ///< with the padded vocabulary
    std::string architecture;                 ///< "LlamaForCausalLM"
    std::vector<std::string> kinds;           ///< of optimizer tensors, each with files of its own
    std::map<std::string, FileRecord> files;  ///< by path within the checkpoint
};

/// The text of the file, ending in a checksum of the rest. TERA_CHECK: all numbers of the state are finite.
std::string state_file_text(const StateFile& file);

/// UsageError if the file is missing, damaged or of a newer format.
StateFile read_state_file(const std::string& path);

/// iter_0000100
std::string iteration_folder(std::int64_t iteration);
/// The iteration of such a name, or -1.
std::int64_t parse_iteration_folder(const std::string& name);

inline const char* tracker_name() { return "latest_checkpointed_iteration.txt"; }

}  // namespace tera
