#include "comm/neighbour.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "core/error.h"

namespace tera {
namespace {

struct State {
    char letter = 0;  ///< as in ps; 0 if there is no such process
    std::int64_t born = 0;
};

State state_of(std::int64_t pid) {
    std::ifstream in(cat("/proc/", pid, "/stat"));
    std::string text;
    std::getline(in, text);
    const auto name_end = text.rfind(')');  // a name may have spaces
    if (name_end == text.npos) return {};
    std::istringstream fields(text.substr(name_end + 1));
    State state;
    fields >> state.letter;
    std::string skipped;
    constexpr int between = 18;  // fields from the state, the third, to the start, the twenty-second
    for (int i = 0; i < between; ++i) fields >> skipped;
    fields >> state.born;
    return fields ? state : State{};
}

std::int64_t this_machine() {
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
    struct stat numbers {};
    if (boot.empty() || ::stat("/proc/self/ns/pid", &numbers) != 0) return 0;
    return static_cast<std::int64_t>(std::hash<std::string>{}(cat(boot, " ", numbers.st_ino)));
}

}  // namespace

ProcessIdentity own_identity() { return {::getpid(), this_machine(), state_of(::getpid()).born}; }

bool end_if_stopped(const ProcessIdentity& process) {
    static const std::int64_t here = this_machine();
    if (here == 0 || process.machine != here || process.pid <= 0 || process.pid == ::getpid()) return false;
    const State state = state_of(process.pid);
    return state.letter == 'T' && state.born == process.born && ::kill(static_cast<pid_t>(process.pid), SIGKILL) == 0;
}

}  // namespace tera
