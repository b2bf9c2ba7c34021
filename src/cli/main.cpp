// Finds the sub-command, runs it, and turns what it throws into one line and an exit code:
//   0  done    1  broken contract or machine failure, with rank and host    2  the user can fix it: one line
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "cli/commands.h"
#include "config/arg_parser.h"
#include "core/build_info.h"
#include "core/error.h"
#include "io/lost_pages.h"

namespace tera {
namespace {

struct Command {
    const char* name;
    int (*run)(const CommandArgs&);  ///< null for what is not built yet
    const char* summary;
    const char* why_not = nullptr;     ///< without run: when it comes, or what to do instead
    bool outlives_its_reader = false;  ///< keeps running when whoever reads its output goes away
};

const Command commands[] = {
    {"pretrain", &cmd_pretrain, "train a model: pretrain gpt <flags>", nullptr, true},
    {"preprocess", &cmd_preprocess, "turn JSON-lines text into .bin/.idx token files", nullptr, true},
    {"tokenizer", &cmd_tokenizer, "train a byte-level BPE tokenizer: tokenizer train <flags>"},
    {"example-corpus", &cmd_example_corpus, "write the built-in example corpus of short English stories"},
    {"data", &cmd_data, "inspect, export, merge, mix, list and split-work for token files"},
    {"generate", &cmd_generate, "continue a prompt with a trained model"},
    {"export", nullptr, "write a checkpoint in another layout",
     "every checkpoint iter_N folder already is a Hugging Face model"},
    {"import", nullptr, "read a checkpoint of another program",
     "a folder of Hugging Face files loads with pretrain --load DIR --finetune"},
    {"verify", &cmd_verify, "prove a parallel layout equal to one rank: verify gpt <flags> --world-size N"},
    {"plan", &cmd_plan, "check a run and print its sizes without running it: plan gpt <flags> --world-size N"},
    {"bench", &cmd_bench, "measure a training step: bench step gpt <flags>"},
    {"launch", &cmd_launch, "start several ranks on this machine: launch local --nproc-per-node N -- <command>",
     nullptr, true},
    {"board", &cmd_board, "draw the loss curve of a metrics file as SVG"},
    {"doctor", &cmd_doctor, "what this machine has, what is missing and how to get it"},
};

void print_help() {
    std::printf("%s\n\nusage: teratron <command> [flags]\n\ncommands:\n", version_line().c_str());
    for (const Command& c : commands) {
        std::printf("  %-15s %s%s\n", c.name, c.summary, c.run == nullptr ? "  [not built yet]" : "");
    }
    std::printf(
        "\n  teratron <command> --help   flags of a command\n  teratron --version          version and build\n");
}

void print_version() { std::printf("%s\nflags: %s\n", version_line().c_str(), build_info().flags); }

const Command& find_command(const std::string& name) {
    std::vector<std::string> names;
    for (const Command& c : commands) {
        if (name == c.name) return c;
        names.emplace_back(c.name);
    }
    const std::string close = nearest_name(name, names);
    usage_error("no command '", name, "'", close.empty() ? "" : cat("; did you mean '", close, "'?"),
                " (teratron --help lists them all)");
}

// Where one of the three standard descriptors is closed, the next file or socket that is opened would take its number,
// and receive what is meant for the log.
void fill_closed_descriptors() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
    }
}

// A log reader that goes away must not end a training run of weeks; `teratron doctor | head` must end quietly. A parent
// may have left SIGPIPE ignored, so both are said.
void choose_broken_pipe_behaviour(bool outlives_its_reader) {
    signal(SIGPIPE, outlives_its_reader ? SIG_IGN : SIG_DFL);
}

// Output that could not be written is an error, not a success: `teratron plan > /dev/full`.
void flush_standard_output(bool outlives_its_reader) {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
    const int reason = errno;
    if (outlives_its_reader && (reason == EPIPE || reason == 0)) return;
    usage_error("cannot write standard output: ", reason == 0 ? "write error" : std::strerror(reason));
}

int run(const std::vector<std::string>& words) {
    if (words.empty()) {
        print_help();
        flush_standard_output(false);
        return 2;
    }
    const std::string& first = words[0];
    if (first == "--help" || first == "-h" || first == "--version" || first == "-V") {
        first == "--help" || first == "-h" ? print_help() : print_version();
        flush_standard_output(false);
        return 0;
    }
    if (first == "help" && words.size() > 1) return run({words[1], "--help"});
    if (first == "help" || first == "version") return run({"--" + first});
    const Command& command = find_command(first);
    if (command.run == nullptr) usage_error("'", command.name, "' is not built yet: ", command.why_not);
    choose_broken_pipe_behaviour(command.outlives_its_reader);
    explain_lost_pages();
    const int code = command.run({words.begin() + 1, words.end()});
    flush_standard_output(command.outlives_its_reader);
    return code;
}

// Which process of many this is, from the variables the launchers set (torchrun, Slurm, Open MPI, MPICH).
std::string rank_and_host() {
    const char* rank = nullptr;
    for (const char* name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
        if ((rank = std::getenv(name)) != nullptr) break;
    }
    char host[256] = {};
    if (gethostname(host, sizeof host - 1) != 0) std::strcpy(host, "unknown host");
    return cat("rank ", rank == nullptr ? "0" : rank, " (", host, ")");
}

// The promise is one line, whatever a library or a file name put into the text.
std::string on_one_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    for (char& c : text) {
        if (c == '\n' || c == '\r') c = ' ';
    }
    return text;
}

int fail(int code, const std::string& who, const std::string& what) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", who.c_str(), on_one_line(what).c_str());
    std::fflush(stderr);
    return code;
}

}  // namespace
}  // namespace tera

int main(int argc, char** argv) {
    tera::fill_closed_descriptors();
    try {
        return tera::run({argv + 1, argv + argc});
    } catch (const tera::UsageError& e) {
        return tera::fail(2, "teratron", e.what());
    } catch (const std::bad_alloc&) {
        return tera::fail(1, tera::rank_and_host(), "out of memory");
    } catch (const std::exception& e) {
        return tera::fail(1, tera::rank_and_host(), e.what());
    }
}
