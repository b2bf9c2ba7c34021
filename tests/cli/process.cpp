#include "cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tera::test {
namespace {

struct Pipe {
    int read_end = -1, write_end = -1;
    Pipe() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
        read_end = ends[0];
        write_end = ends[1];
    }
};

// Between fork and exec: only what is safe there.
[[noreturn]] void become_teratron(char* const* argv, const RunOptions& options, int out, int err) {
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    if (options.file_size_limit >= 0) {
        const rlimit limit = {static_cast<rlim_t>(options.file_size_limit),
                              static_cast<rlim_t>(options.file_size_limit)};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);
    }
    for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
    execv(TERA_BINARY, argv);
    _exit(127);
}

// Both streams are drained together, so that neither can fill its pipe and stall the program.
void drain(std::array<int, 2> ends, std::array<std::string*, 2> into, pid_t child, Outcome& outcome, int seconds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    std::array<pollfd, 2> polled = {pollfd{ends[0], POLLIN, 0}, pollfd{ends[1], POLLIN, 0}};
    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
        poll(polled.data(), polled.size(), 100);
        for (size_t i = 0; i < 2; ++i) {
            if (polled[i].fd < 0 || polled[i].revents == 0) continue;
            char buffer[4096];
            const ssize_t got = read(polled[i].fd, buffer, sizeof buffer);
            if (got > 0) into[i]->append(buffer, static_cast<size_t>(got));
            if (got <= 0) polled[i].fd = -1;
        }
        if (!outcome.timed_out && std::chrono::steady_clock::now() > deadline) {
            outcome.timed_out = true;
            kill(child, SIGKILL);
        }
    }
}

}  // namespace

Outcome teratron(const std::vector<std::string>& args, const RunOptions& options) {
    std::vector<char*> argv = {const_cast<char*>("teratron")};
    for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    Pipe out, err;
    int out_fd = out.write_end;
    if (!options.stdout_path.empty()) out_fd = open(options.stdout_path.c_str(), O_WRONLY | O_CLOEXEC);
    if (options.nobody_reads) close(std::exchange(out.read_end, -1));
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) become_teratron(argv.data(), options, out_fd, err.write_end);
    close(out.write_end);
    close(err.write_end);
    if (out_fd != out.write_end) close(out_fd);
    Outcome outcome;
    drain({out.read_end, err.read_end}, {&outcome.out, &outcome.err}, child, outcome, options.timeout_seconds);
    if (out.read_end >= 0) close(out.read_end);
    close(err.read_end);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    return outcome;
}

TemporaryFolder::TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "teratron-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, const std::string& content) {
    std::ofstream out(path, std::ios::binary);
    out << content;
    if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream content;
    content << in.rdbuf();
    return content.str();
}

std::string slurm_missing() {
    const TemporaryFolder folder;
    (void)!std::system((with_slurm + " > " + (folder / "why").string()).c_str());
    return read_file(folder / "why");
}

size_t line_count(const std::string& text) {
    const auto newlines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    return newlines + (text.empty() || text.back() == '\n' ? 0 : 1);
}

}  // namespace tera::test
