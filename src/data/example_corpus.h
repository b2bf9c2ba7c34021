// Short English stories, made up from a grammar: a corpus to try everything with, wherever there is no network.
#pragma once

#include <cstdint>
#include <string>

namespace tera {

/// Story number `index` of the corpus with this seed; the same on every machine.
std::string example_story(std::uint64_t seed, std::uint64_t index);

struct ExampleCorpusSize {
    std::int64_t stories = 0;
    std::int64_t bytes = 0;
};

/// Writes JSON lines {"text": story} until the file has at least `bytes` bytes. The file appears whole or not at all.
ExampleCorpusSize write_example_corpus(const std::string& path, std::int64_t bytes, std::uint64_t seed);

}  // namespace tera
