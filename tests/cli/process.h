// Runs the real binary as a user would and keeps what it said.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tera::test {

struct Outcome {
    int exit_code = -1;  ///< -1 when a signal ended it
    int signal = 0;      ///< that signal
    bool timed_out = false;
    std::string out, err;
};

struct RunOptions {
    std::filesystem::path folder;                                    ///< working folder; empty: this process's
    std::vector<std::pair<std::string, std::string>> environment{};  ///< added to this process's
    std::string stdout_path{};                                       ///< instead of being kept in Outcome::out
    long file_size_limit = -1;  ///< RLIMIT_FSIZE in bytes with SIGXFSZ ignored: writes fail as on a full disk
    int timeout_seconds = 120;  ///< then it is killed
    bool nobody_reads = false;  ///< standard output is a pipe whose reader has gone away
};

/// `teratron <args...>`.
Outcome teratron(const std::vector<std::string>& args, const RunOptions& options = {});

/// A fresh folder, removed with everything in it at the end.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& content);
std::string read_file(const std::filesystem::path& path);

/// Before a command: it runs beside a Slurm of its own.
inline const std::string with_slurm = std::string(TERA_SOURCE_DIR) + "/tests/support/with_slurm.sh";
/// Why there can be none here; "" if there can.
std::string slurm_missing();

/// Lines in a text; a last one without a newline counts.
size_t line_count(const std::string& text);

}  // namespace tera::test
