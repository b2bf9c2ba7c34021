// teratron example-corpus: a file of made-up stories to try everything with.
#include <cstdio>

#include "cli/commands.h"
#include "config/arg_parser.h"
#include "core/error.h"
#include "data/example_corpus.h"

namespace tera {

int cmd_example_corpus(const CommandArgs& args) {
    ArgParser parser("teratron example-corpus",
                     "Writes short English stories as JSON lines {\"text\": ...}; the same ones for the same seed.");
    parser.option("output", ArgType::text).required().help("file to write");
    parser.option("megabytes", ArgType::real).defaults("10").help("least size of the file, in millions of bytes");
    parser.option("seed", ArgType::integer).defaults("1234").help("chooses the stories");
    const ParsedArgs parsed = parser.parse(args);
    if (parsed.help_wanted) return 0;
    const double megabytes = parsed.real("megabytes");
    if (!(megabytes > 0 && megabytes <= 1e6))
        usage_error("--megabytes ", megabytes, " is out of range; give up to 1e6");
    const std::string output = parsed.text("output");
    const ExampleCorpusSize size = write_example_corpus(output, static_cast<std::int64_t>(megabytes * 1e6),
                                                        static_cast<std::uint64_t>(parsed.integer("seed")));
    std::printf("Wrote %lld stories, %.1f MB, to %s\n", static_cast<long long>(size.stories),
                static_cast<double>(size.bytes) / 1e6, output.c_str());
    return 0;
}

}  // namespace tera
