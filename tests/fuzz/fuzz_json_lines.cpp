// Lines of a corpus, as preprocess reads them.
#include "data/preprocess_lines.h"
#include "fuzz/fuzz.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    return {"{\"text\": \"one\\ntwo \\u00e9 \\ud83d\\ude00\", \"id\": [1, {\"x\": null}]}\n",
            "{\"meta\": {\"text\": 1}, \"text\": [\"a\", \"b\"]}\r\n{\"text\": \"\"}\r", "\n", "{\"text\": 3}"};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    KeyedStrings keyed({"text"});
    while (!rest.empty()) {
        const std::size_t before = rest.size();
        const Line line = take_line(rest);
        if (rest.size() >= before) __builtin_trap();  // it would never end
        fuzz::attempt([&] {
            keyed.parse(line.text);
            (void)keyed.strings(0).size();
        });
    }
    return 0;
}
