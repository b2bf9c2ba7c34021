#include "data/example_corpus.h"

#include "data/example_corpus_grammar.h"
#include "io/durable_file.h"
#include "token/json_scan.h"

namespace tera {

std::string example_story(std::uint64_t seed, std::uint64_t index) {
    const StoryGrammar& grammar = example_grammar();
    StoryRandom random(seed, index);
    const StoryPlot& plot = grammar.plots[random.below(grammar.plots.size())];
    return tell_story(grammar, plot, random);
}

ExampleCorpusSize write_example_corpus(const std::string& path, std::int64_t bytes, std::uint64_t seed) {
    constexpr std::size_t write_at_once = 1 << 20;
    DurableFile file(path);
    ExampleCorpusSize size;
    std::string buffer;
    const auto flush = [&] {
        file.out().append(buffer);
        buffer.clear();
    };
    while (size.bytes < bytes) {
        const std::string line =
            "{\"text\": " + json_string(example_story(seed, static_cast<std::uint64_t>(size.stories))) + "}\n";
        size.bytes += static_cast<std::int64_t>(line.size());
        ++size.stories;
        buffer += line;
        if (buffer.size() >= write_at_once) flush();
    }
    flush();
    file.commit();
    return size;
}

}  // namespace tera
