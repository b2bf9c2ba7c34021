// Output of several processes, line by line, each line with a label before it.
#pragma once

#include <map>
#include <string>

#include "launch/patient_output.h"

namespace tera {

/// Complaints ("teratron: ...", who says so left out) and the process that was the first to make them.
using Complaints = std::map<std::string, int>;

class LabelledLines {
  public:
    LabelledLines() = default;
    LabelledLines(std::string label, PatientOutput& to) : label_(std::move(label)), to_(&to) {}
    /// Leaves out complaints that another process has made in the same words.
    LabelledLines(std::string label, PatientOutput& to, Complaints& made, int process)
        : label_(std::move(label)), to_(&to), made_(&made), process_(process) {}

    /// Writes the lines that are complete and keeps the rest; a line without end is written in long pieces.
    void add(const char* bytes, std::size_t count);
    /// What was left without a line end gets one.
    void finish();
    /// Where the lines go.
    const PatientOutput& output() const { return *to_; }

  private:
    void write_out(std::size_t count);
    bool made_by_another(const std::string& line);

    std::string label_, pending_;
    PatientOutput* to_ = nullptr;
    Complaints* made_ = nullptr;
    int process_ = 0;
};

}  // namespace tera
