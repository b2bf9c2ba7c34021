// Two kinds of failure, and nothing else.
//   UsageError  the user can fix it: flags, files, environment. One line: what, where, how to fix. Exit code 2.
//   Error       a broken contract between parts of the program. Carries file:line, the expression and the values.
// TERA_ASSERT is for our own invariants and vanishes in release builds.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tera {

/// Joins its arguments as text, as operator<< would print them. (fmt does not compile under nvcc, so nothing that a
/// .cu file may include uses it.)
template <class... Args>
std::string cat(const Args&... args) {
    std::ostringstream out;
    (out << ... << args);
    return out.str();
}

/// Line ends and other control characters (of a file's name or content, say) written out: \\n, \\x1b.
std::string one_line(const std::string& text);

class UsageError : public std::runtime_error {
  public:
    explicit UsageError(const std::string& what) : std::runtime_error(one_line(what)) {}
};

class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& what) : std::runtime_error(what) {}
};

/// Throws UsageError with the joined text.
template <class... Args>
[[noreturn]] void usage_error(const Args&... args) {
    throw UsageError(cat(args...));
}

[[noreturn]] void contract_failed(const char* file, int line, const char* expression, const std::string& values);

}  // namespace tera

#define TERA_CHECK(condition, ...)                                                                           \
    do {                                                                                                     \
        if (!(condition)) ::tera::contract_failed(__FILE__, __LINE__, #condition, ::tera::cat(__VA_ARGS__)); \
    } while (0)

#ifdef NDEBUG
#define TERA_ASSERT(condition) ((void)0)
#else
#define TERA_ASSERT(condition) TERA_CHECK(condition, "")
#endif
