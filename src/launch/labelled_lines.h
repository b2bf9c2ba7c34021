// Output of several processes, line by line, each line with a label before it.
#pragma once

#include <string>

#include "launch/patient_output.h"

namespace tera {

class LabelledLines {
  public:
    LabelledLines() = default;
    LabelledLines(std::string label, PatientOutput& to) : label_(std::move(label)), to_(&to) {}

    /// Writes the lines that are complete and keeps the rest; a line without end is written in long pieces.
    void add(const char* bytes, std::size_t count);
    /// What was left without a line end gets one.
    void finish();
    /// Where the lines go.
    const PatientOutput& output() const { return *to_; }

  private:
    void write_out(std::size_t count);

    std::string label_, pending_;
    PatientOutput* to_ = nullptr;
};

}  // namespace tera
