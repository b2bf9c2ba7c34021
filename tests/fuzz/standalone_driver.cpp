// Drives a fuzz target where libFuzzer is not at hand: mutates the seeds at random until the time is up.
//   -max_total_time=SECONDS (default 10)   -seed=N (default 1)   -max_len=BYTES (default 4096)   FILE...  replay only
// An input that ends the program is left in crash-<pid> for replay.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/fuzz.h"

namespace {

using Random = std::mt19937_64;

std::string current;  // read by the signal handler when the target dies on it

size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random() % limit); }

// Values parsers trip over: limits of the integer types, written at their width.
void overwrite_number(std::string& text, Random& random) {
    static constexpr uint64_t telling[] = {
        0,          1,          0x7f,       0x80,       0xff,       0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
        1ull << 33, 1ull << 61, 1ull << 62, ~0ull >> 1, 1ull << 63, ~0ull,  34,     ~0ull - 33, 1ull << 60};
    const uint64_t value = telling[below(random, std::size(telling))];
    const size_t width = size_t{1} << below(random, 4);
    if (text.size() < width) return;
    std::memcpy(text.data() + below(random, text.size() - width + 1), &value, width);
}

// Splices of text that JSON and line formats care about.
void insert_token(std::string& text, Random& random) {
    static constexpr const char* tokens[] = {"{",
                                             "}",
                                             "[",
                                             "]",
                                             "\"",
                                             ":",
                                             ",",
                                             "\\",
                                             "\\u",
                                             "\\ud8",
                                             "null",
                                             "true",
                                             "-",
                                             "1e999",
                                             "\n",
                                             "\r",
                                             " ",
                                             "\t",
                                             "\xff",
                                             "\xc3",
                                             "\xe2\x82",
                                             "NaN",
                                             "1e-999",
                                             "-1",
                                             "\"\"",
                                             "0.5",
                                             "9223372036854775808",
                                             "[[[[",
                                             "data_offsets",
                                             "#version"};
    text.insert(below(random, text.size() + 1), tokens[below(random, std::size(tokens))]);
}

std::string mutated(std::string text, const std::vector<std::string>& seeds, Random& random) {
    for (size_t n = 1 + below(random, 6); n > 0; --n) {
        const size_t at = below(random, text.size() + 1),
                     length = below(random, std::min<size_t>(64, text.size() - at + 1));
        switch (below(random, 9)) {
            case 0:
                if (at < text.size()) text[at] = static_cast<char>(random());
                break;
            case 1:
                if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
                break;
            case 2:
                text.erase(at, length);
                break;
            case 3:
                text.insert(at, text.substr(at, length));
                break;
            case 4:
                text.resize(at);
                break;
            case 5:
                overwrite_number(text, random);
                break;
            case 6:
                insert_token(text, random);
                break;
            case 7: {
                const std::string& other = seeds[below(random, seeds.size())];
                const size_t from = below(random, other.size() + 1);
                text.insert(at, other.substr(from, below(random, 65)));
                break;
            }
            default:
                text.insert(at, 1, static_cast<char>(random()));
                break;
        }
    }
    return text;
}

void run(const std::string& input) {
    current = input;
    // A copy of exactly this size on the heap, so that the sanitizer sees a read one byte beyond it.
    const std::vector<uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void keep_input() {
    char name[32];
    std::snprintf(name, sizeof name, "crash-%d", getpid());
    const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, current.data(), current.size()) >= 0) {
        std::fprintf(stderr, "the input is in %s (%zu bytes)\n", name, current.size());
    }
}

void on_signal(int number) {
    keep_input();
    signal(number, SIG_DFL);
    raise(number);
}

long option(const char* argument, const char* name, long otherwise) {
    const size_t length = std::strlen(name);
    return std::strncmp(argument, name, length) == 0 ? std::atol(argument + length) : otherwise;
}

}  // namespace

extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*)());

int main(int argc, char** argv) {
    long seconds = 10, seed = 1, max_length = 4096;
    std::vector<std::string> files;
    for (int i = 1; i < argc; ++i) {
        seconds = option(argv[i], "-max_total_time=", seconds);
        seed = option(argv[i], "-seed=", seed);
        max_length = option(argv[i], "-max_len=", max_length);
        if (argv[i][0] != '-') files.emplace_back(argv[i]);
    }
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);
    for (const int number : {SIGABRT, SIGILL, SIGTRAP}) signal(number, on_signal);
    for (const std::string& file : files) {
        std::ifstream in(file, std::ios::binary);
        run({std::istreambuf_iterator<char>(in), {}});
    }
    if (!files.empty()) return 0;

    const std::vector<std::string> seeds = tera::fuzz::seeds();
    for (const std::string& s : seeds) run(s);
    Random random(static_cast<uint64_t>(seed));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    long runs = 0;
    while (std::chrono::steady_clock::now() < end) {
        std::string input = mutated(seeds[below(random, seeds.size())], seeds, random);
        if (input.size() > static_cast<size_t>(max_length)) input.resize(static_cast<size_t>(max_length));
        run(input);
        ++runs;
    }
    std::printf("%ld inputs in %ld s, none broke it\n", runs, seconds);
    return 0;
}
