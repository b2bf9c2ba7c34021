// Output of several processes, line by line, each line with a label before it.
#pragma once

#include <string>

namespace tera {

class LabelledLines {
  public:
    LabelledLines() = default;
    /// fd: where the lines go.
    LabelledLines(std::string label, int fd) : label_(std::move(label)), fd_(fd) {}

    /// Writes the lines that are complete and keeps the rest; a line without end is written in long pieces.
    void add(const char* bytes, std::size_t count);
    /// What was left without a line end gets one.
    void finish();

  private:
    void write_out(std::size_t count);

    std::string label_, pending_;
    int fd_ = 1;
};

}  // namespace tera
