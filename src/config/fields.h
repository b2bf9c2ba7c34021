// The one list of training flags. Parsing, --help, the argument block, the record in a checkpoint, the difference
// printed at resume and the YAML keys are all read off this list; nothing about a flag is said anywhere else.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "config/arg_parser.h"
#include "config/run_config.h"

namespace tera {

/// What becomes of a flag that is given with a value other than its neutral default.
enum class FlagStatus {
    implemented,  // does what it says
    inert,        // accepted; one printed line says why it changes nothing here
    later,        // checked, planned and counted; training with it is refused until it is built
    refused,      // refused by name with the reason
};

/// What a changed value means for a run that resumes from a checkpoint.
enum class ResumeRule {
    free,      // where and how to run: paths, intervals, logging, layout
    shape,     // the model itself: the checkpoint's weights do not fit
    schedule,  // learning-rate and weight-decay schedule: needs --override-opt_param-scheduler
    training,  // changes the course of training from here on; allowed and said
    data,      // changes which samples come next; allowed and said
};

/// Where the value lives. std::monostate: in RunConfig::inert, as text.
using Member =
    std::variant<std::monostate, bool RunConfig::*, int64_t RunConfig::*, double RunConfig::*, std::string RunConfig::*,
                 std::optional<int64_t> RunConfig::*, std::optional<double> RunConfig::*,
                 std::vector<int64_t> RunConfig::*, std::vector<std::string> RunConfig::*>;

struct Field {
    std::vector<std::string> names;  // without dashes; the first is the one shown
    std::string dest;                // Megatron's name of the value
    Member member;
    ArgType type = ArgType::text;
    ArgCount count = ArgCount::one();
    bool switch_value = true;  // what the switch sets its value to
    std::vector<std::string> choices;
    std::string default_text;  // as Python prints the default; for members only where it differs from the value's own
    std::string group, help;
    FlagStatus status = FlagStatus::implemented;
    std::string reason;                      // for every status but implemented, or for the choices below
    std::vector<std::string> later_choices;  // these values are `later`, the others implemented
    ResumeRule resume = ResumeRule::free;
    bool secondary = false;        // not a core 0.12 name: its prefixes yield
    bool none_when_false = false;  // a switch whose default Python prints as None
    bool untyped = false;          // refused whatever its values are

    /// "--no-data-sharding".
    std::string flag() const { return "--" + names[0]; }
    /// Whether the flag's value is the opposite of what it is kept as: --no-data-sharding is kept as data_sharding.
    bool opposite() const { return !switch_value; }

    Field& off() {
        switch_value = false;
        return *this;
    }
    Field& as(const std::string& name) {
        dest = name;
        return *this;
    }
    Field& alias(const std::string& name) {
        names.push_back(name);
        return *this;
    }
    Field& one_of(std::vector<std::string> values) {
        choices = std::move(values);
        return *this;
    }
    Field& values(ArgCount how_many) {
        count = how_many;
        return *this;
    }
    Field& prints(const std::string& text) {
        default_text = text;
        return *this;
    }
    Field& on_resume(ResumeRule rule) {
        resume = rule;
        return *this;
    }
    Field& not_from_core() {
        secondary = true;
        return *this;
    }
    Field& none_unless_set() {
        none_when_false = true;
        return *this;
    }
    Field& later(const std::string& why) {
        status = FlagStatus::later;
        reason = why;
        return *this;
    }
    Field& no_effect(const std::string& why) {
        status = FlagStatus::inert;
        reason = why;
        return *this;
    }
    Field& later_for(std::vector<std::string> values, const std::string& why) {
        later_choices = std::move(values);
        reason = why;
        return *this;
    }
};

/// A flag without a member. The signature says type and default in the notation of the reference list:
///   T switch · F dest: switch that clears dest · i, f, s value · {a|b} choices · * or + several values · =x default ·
///   > name: destination · ? anything at all
struct UnboundFlag {
    const char* name;
    const char* signature;
};

class FieldList {
  public:
    void group(const std::string& title, ResumeRule resume = ResumeRule::free);
    Field& add(const std::string& name, Member member, const std::string& help);
    void unbound(FlagStatus status, const std::string& reason, std::initializer_list<UnboundFlag> flags,
                 bool core = true);
    std::vector<Field> take() { return std::move(fields_); }

  private:
    std::string group_;
    ResumeRule resume_ = ResumeRule::free;
    std::vector<Field> fields_;
};

const std::vector<Field>& fields();
const char* flag_status_name(FlagStatus status);

/// Sets the field's value from checked texts ("true"/"false" for switches).
void assign_field(RunConfig& config, const Field& field, const std::vector<std::string>& values);

/// The value as Python's str() prints it: None, True, 1e-05, ['a', 'b'].
std::string python_text(const RunConfig& config, const Field& field);

/// True if the value is the one an untouched configuration has.
bool is_default(const RunConfig& config, const Field& field);

/// A double as Python's repr prints it.
std::string python_real(double value);

// One function per file of the list.
void add_model_fields(FieldList& list);
void add_training_fields(FieldList& list);
void add_checkpoint_fields(FieldList& list);
void add_parallel_fields(FieldList& list);
void add_data_fields(FieldList& list);
void add_logging_fields(FieldList& list);
void add_unbuilt_fields(FieldList& list);
void add_newer_fields(FieldList& list);

}  // namespace tera
