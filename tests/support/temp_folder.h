// A fresh folder for one test, removed with all it holds at the end.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace tera {

class TempFolder {
  public:
    /// memory: where syncing to disk costs nothing, if there is such a place. For tests that write thousands of files.
    enum class Where { disk, memory };
    explicit TempFolder(Where where = Where::disk) {
        const bool memory = where == Where::memory && access("/dev/shm", W_OK) == 0;
        const std::filesystem::path parent = memory ? "/dev/shm" : std::filesystem::temp_directory_path();
        std::string pattern = (parent / "teratron-test-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + pattern);
        path_ = pattern;
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

}  // namespace tera
