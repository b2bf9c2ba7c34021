// Text for a reader who may be slow or away: it waits in memory, and a thread of its own writes it.
//
// The bound on what waits is kept by whoever adds: it asks ready() before it takes more from its own sources, so those
// wait as they would for a terminal. Once we are about to leave, a reader that takes nothing for a second is given up,
// and what it has no room for is dropped.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tera {

class PatientOutput {
  public:
    /// `enough`: bytes that may wait.
    PatientOutput(int fd, std::size_t enough);
    ~PatientOutput();
    PatientOutput(const PatientOutput&) = delete;
    PatientOutput& operator=(const PatientOutput&) = delete;

    /// Never blocks.
    void add(std::string text);
    /// There is room for more, or nobody to keep it for.
    bool ready() const;
    /// Nothing is left to write, or nobody to write it for.
    bool done() const;
    void about_to_leave();

    /// Readable when something was written since clear_news().
    int news_fd() const;
    void clear_news();

  private:
    struct Shared;
    std::shared_ptr<Shared> shared_;  ///< with the thread, which may be in a write that never ends
};

}  // namespace tera
