// Ends the program in words when the processor lacks instructions the binary was compiled to use.
//
// It must run before any code that might use them, so: this one file is compiled for the plainest processor of the
// architecture (see CMakeLists.txt), it is a constructor of the earliest priority, ahead of all static initialisers,
// and it calls nothing that could have been compiled elsewhere: no templates, no inline functions of the library.
#include <unistd.h>

#include "core/cpu_feature_list.h"

#if defined(__x86_64__)

namespace {

unsigned long length(const char* text) {
    unsigned long n = 0;
    while (text[n] != 0) ++n;
    return n;
}

void say(const char* text) {
    if (write(STDERR_FILENO, text, length(text)) < 0) _exit(2);
}

[[gnu::constructor(101)]] void refuse_lesser_processor() {
    __builtin_cpu_init();
    const char* missing = nullptr;
    uint32_t bit = 1;
#define TERA_TEST(macro, builtin_name, shown)                                                                \
    if ((tera::cpu_features_built_for & bit) != 0 && !__builtin_cpu_supports(builtin_name)) missing = shown; \
    bit <<= 1;
    TERA_X86_FEATURES(TERA_TEST)
#undef TERA_TEST
    if (missing == nullptr) return;
    say("teratron: this binary was built for a processor with ");
    say(missing);
    say(", which this machine does not have; rebuild here with scripts/build.sh, or with --arch x86-64-v3\n");
    _exit(2);
}

}  // namespace

#endif
