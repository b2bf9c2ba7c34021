// .npy files, as index caches hold them.
#include <span>

#include "fuzz/fuzz.h"
#include "io/npy.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    return {npy_header(NpyType::i32, {3, 2}) + std::string(24, '\1'),
            npy_header(NpyType::i64, {2}) + std::string(16, '\2'), npy_header(NpyType::i16, {0})};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    fuzz::attempt([&] {
        const NpyArray array = parse_npy(std::as_bytes(std::span(data, size)), "fuzz.npy");
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < array.size(); ++i) sum ^= array[i];
        if (array.byte_size() > static_cast<std::int64_t>(size)) __builtin_trap();
        (void)sum;
    });
    return 0;
}
