// safetensors files: every tensor of an accepted file must be readable to its last byte.
#include <algorithm>

#include "fuzz/fuzz.h"
#include "io/safetensors.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    auto add = [&](const std::vector<TensorSpec>& tensors, const std::map<std::string, std::string>& metadata) {
        std::string file = safetensors_header(tensors, metadata);
        for (const TensorSpec& t : tensors) file.append(t.bytes(), '\x3f');
        all.push_back(file);
    };
    add({{"a", DType::f32, {2, 3}}, {"b.weight", DType::bf16, {4}}}, {{"format", "pt"}});
    add({{"x", DType::f64, {1}}}, {});
    add({}, {});
    const std::string foreign = R"({"t":{"dtype":"F8_E4M3","shape":[2,0,1],"data_offsets":[0,0]}})";
    std::string length(8, '\0');
    length[0] = static_cast<char>(foreign.size());
    all.push_back(length + foreign);
    return all;
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    fuzz::attempt([&] {
        const fuzz::MemoryFile file(data, size);
        const SafetensorsFile tensors(file.path());
        std::vector<std::byte> buffer(4096);
        for (const SafetensorsEntry& entry : tensors.entries()) {
            if (tensors.find(entry.name) != &entry) __builtin_trap();
            if (entry.offset + entry.bytes > size) __builtin_trap();
            (void)entry.shape_text();
            for (std::uint64_t first = 0; first < entry.bytes; first += buffer.size()) {
                const std::uint64_t left = entry.bytes - first;
                tensors.read(entry, first, std::span(buffer).first(std::min<std::uint64_t>(left, buffer.size())));
            }
        }
    });
    return 0;
}
