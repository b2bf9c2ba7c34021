// libFuzzer reads its first inputs from a folder: the one TERA_FUZZ_SEEDS names is filled here, before it looks.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* folder = std::getenv("TERA_FUZZ_SEEDS");
    if (folder == nullptr) return 0;
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const std::string& seed : tera::fuzz::seeds()) {
        std::ofstream(std::filesystem::path(folder) / ("seed_" + std::to_string(number++)), std::ios::binary) << seed;
    }
    return 0;
}
