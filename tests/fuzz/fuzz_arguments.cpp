// Arguments from files: --config run.yaml, and @FILE.
#include "config/arg_parser.h"
#include "config/yaml_arguments.h"
#include "fuzz/fuzz.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    return {"num_layers: 12\ndata-path: [0.3, corpus_a, 0.7, corpus_b]\nswiglu: true  # comment\nlr: .01\n",
            "add_bias_linear: false\nsplit: \"98,2,0\"\n? a\n: b\n", "&a [*a]\n",
            "--num-layers 2 --lr=.1 # comment\n'a b' \"c\\\"d\"\n"};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    const fuzz::MemoryFile file(data, size);
    fuzz::attempt([&] { (void)read_yaml_arguments(file.path()); });
    fuzz::attempt([&] { (void)expand_argument_files({"@" + file.path()}); });
    return 0;
}
